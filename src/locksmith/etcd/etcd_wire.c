/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/etcd/etcd_wire.h"

/* The numbers of fields in etcd's messages: its rpc.proto and kv.proto. */
enum txn_request { COMPARE = 1 };
enum txn_response { TXN_HEADER = 1, TXN_SUCCEEDED = 2, TXN_RESPONSES = 3, HEADER_REVISION = 3 };
/* the responses to these requests have the same numbers */
enum request_op { OP_RANGE = 1, OP_PUT = 2, OP_DELETE = 3, OP_TXN = 4 };
enum compare {
	COMPARE_RESULT = 1,
	COMPARE_TARGET = 2,
	COMPARE_KEY = 3,
	COMPARE_MADE_AT = 5,
	COMPARE_PUT_AT = 6,
	COMPARE_END = 64,
	COMPARE_MADE = 1, /* values of COMPARE_TARGET */
	COMPARE_PUT = 2
};
enum range_request {
	RANGE_KEY = 1,
	RANGE_END = 2,
	RANGE_LIMIT = 3,
	RANGE_ORDER = 5,
	RANGE_TARGET = 6,
	RANGE_KEYS_ONLY = 8,
	RANGE_LAST_MADE = 13,
	BY_CREATION = 2 /* a value of RANGE_TARGET */
};
enum range_response { RANGE_KVS = 2 };
enum put_request { PUT_KEY = 1, PUT_VALUE = 2, PUT_LEASE = 3 };
enum delete_request { DELETE_KEY = 1 };
enum key_value { KV_KEY = 1, KV_MADE = 2, KV_PUT = 3, KV_VERSION = 4, KV_VALUE = 5, KV_LEASE = 6 };

void etcd_wire_condition(struct protobuf_out *message, const char *key, const char *end,
    enum txn_result result, int64_t revision)
{
	size_t compare = protobuf_open(message, COMPARE);

	protobuf_int(message, COMPARE_RESULT, result);
	protobuf_int(message, COMPARE_TARGET, COMPARE_MADE);
	protobuf_text(message, COMPARE_KEY, key);
	protobuf_int(message, COMPARE_MADE_AT, revision);
	if (end != NULL)
		protobuf_text(message, COMPARE_END, end);
	protobuf_close(message, compare);
}

void etcd_wire_made_at(struct protobuf_out *message, const char *key, int64_t revision)
{
	etcd_wire_condition(message, key, NULL, TXN_EQUAL, revision);
}

void etcd_wire_put_at(struct protobuf_out *message, const char *key, int64_t revision)
{
	size_t compare = protobuf_open(message, COMPARE);

	protobuf_int(message, COMPARE_RESULT, TXN_EQUAL);
	protobuf_int(message, COMPARE_TARGET, COMPARE_PUT);
	protobuf_text(message, COMPARE_KEY, key);
	protobuf_int(message, COMPARE_PUT_AT, revision);
	protobuf_close(message, compare);
}

static struct etcd_wire_opened open_op(struct protobuf_out *message, enum txn_branch branch,
    enum request_op op)
{
	size_t request = protobuf_open(message, branch);

	return (struct etcd_wire_opened){request, protobuf_open(message, op)};
}

struct etcd_wire_opened etcd_wire_open(struct protobuf_out *message, enum txn_branch branch)
{
	return open_op(message, branch, OP_TXN);
}

void etcd_wire_close(struct protobuf_out *message, struct etcd_wire_opened opened)
{
	protobuf_close(message, opened.txn);
	protobuf_close(message, opened.request);
}

void etcd_wire_range(struct protobuf_out *message, enum txn_branch branch,
    const struct etcd_wire_range *range)
{
	struct etcd_wire_opened op = open_op(message, branch, OP_RANGE);

	protobuf_text(message, RANGE_KEY, range->key);
	if (range->end != NULL)
		protobuf_text(message, RANGE_END, range->end);
	if (range->limit > 0)
		protobuf_int(message, RANGE_LIMIT, range->limit);
	if (range->before > 0 && range->before != INT64_MAX)
		protobuf_int(message, RANGE_LAST_MADE, range->before - 1);
	if (range->order != TXN_BY_KEY) {
		protobuf_int(message, RANGE_ORDER, range->order);
		protobuf_int(message, RANGE_TARGET, BY_CREATION);
	}
	if (range->keys_only)
		protobuf_int(message, RANGE_KEYS_ONLY, true);
	etcd_wire_close(message, op);
}

void etcd_wire_delete(struct protobuf_out *message, enum txn_branch branch, const char *key)
{
	struct etcd_wire_opened op = open_op(message, branch, OP_DELETE);

	protobuf_text(message, DELETE_KEY, key);
	etcd_wire_close(message, op);
}

void etcd_wire_put(struct protobuf_out *message, enum txn_branch branch, const char *key,
    const char *value, int64_t lease)
{
	struct etcd_wire_opened op = open_op(message, branch, OP_PUT);

	protobuf_text(message, PUT_KEY, key);
	protobuf_text(message, PUT_VALUE, value);
	protobuf_int(message, PUT_LEASE, lease);
	etcd_wire_close(message, op);
}

int64_t etcd_wire_revision(struct protobuf answer)
{
	return protobuf_number(protobuf_bytes(answer, TXN_HEADER, 0), HEADER_REVISION);
}

bool etcd_wire_succeeded(struct protobuf answer)
{
	return protobuf_number(answer, TXN_SUCCEEDED) != 0;
}

struct protobuf etcd_wire_keys(struct protobuf answer, size_t i)
{
	return protobuf_bytes(protobuf_bytes(answer, TXN_RESPONSES, i), OP_RANGE, 0);
}

struct protobuf etcd_wire_inner(struct protobuf answer, size_t i)
{
	return protobuf_bytes(protobuf_bytes(answer, TXN_RESPONSES, i), OP_TXN, 0);
}

bool etcd_wire_next(struct protobuf *keys, struct etcd_key *key)
{
	struct protobuf_field field;

	*key = (struct etcd_key){.made = 0};
	while (protobuf_next(keys, &field)) {
		if (field.number != RANGE_KVS)
			continue;
		key->key = protobuf_bytes(field.bytes, KV_KEY, 0);
		key->value = protobuf_bytes(field.bytes, KV_VALUE, 0);
		key->made = protobuf_number(field.bytes, KV_MADE);
		key->put = protobuf_number(field.bytes, KV_PUT);
		key->version = protobuf_number(field.bytes, KV_VERSION);
		key->lease = protobuf_number(field.bytes, KV_LEASE);
		return true;
	}
	return false;
}

bool etcd_wire_first(struct protobuf answer, size_t i, struct etcd_key *key)
{
	struct protobuf keys = etcd_wire_keys(answer, i);

	return etcd_wire_next(&keys, key);
}
