/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/etcd/etcd_txn.h"

/* The numbers of the fields: etcd's rpc.proto and kv.proto. */
enum txn_request { COMPARE = 1 };
enum txn_response { TXN_HEADER = 1, TXN_SUCCEEDED = 2, TXN_RESPONSES = 3, HEADER_REVISION = 3 };
enum request_op { OP_RANGE = 1, OP_PUT = 2, OP_DELETE = 3, OP_TXN = 4 }; /* and in a response */
enum compare { COMPARE_RESULT = 1, COMPARE_TARGET = 2, COMPARE_KEY = 3, COMPARE_REVISION = 5, COMPARE_END = 64,
	COMPARE_MADE = 1 /* a target */ };
enum range_request {
	RANGE_KEY = 1,
	RANGE_END = 2,
	RANGE_LIMIT = 3,
	RANGE_ORDER = 5,
	RANGE_TARGET = 6,
	RANGE_KEYS_ONLY = 8,
	RANGE_LAST_MADE = 13,
	BY_CREATION = 2 /* a target */
};
enum range_response { RANGE_KVS = 2 };
enum put_request { PUT_KEY = 1, PUT_VALUE = 2, PUT_LEASE = 3 };
enum delete_request { DELETE_KEY = 1 };
enum key_value { KV_KEY = 1, KV_MADE = 2, KV_PUT = 3, KV_VERSION = 4, KV_VALUE = 5, KV_LEASE = 6 };

void etcd_txn_condition(
    struct protobuf_out *m, const char *key, const char *end, enum txn_result result, int64_t revision)
{
	size_t compare = protobuf_open(m, COMPARE);

	protobuf_int(m, COMPARE_RESULT, result);
	protobuf_int(m, COMPARE_TARGET, COMPARE_MADE);
	protobuf_text(m, COMPARE_KEY, key);
	protobuf_int(m, COMPARE_REVISION, revision);
	if (end != NULL)
		protobuf_text(m, COMPARE_END, end);
	protobuf_close(m, compare);
}

void etcd_txn_made_at(struct protobuf_out *m, const char *key, int64_t revision)
{
	etcd_txn_condition(m, key, NULL, TXN_EQUAL, revision);
}

static struct etcd_txn_opened open_op(struct protobuf_out *m, enum txn_branch branch, enum request_op op)
{
	size_t request = protobuf_open(m, branch);

	return (struct etcd_txn_opened){request, protobuf_open(m, op)};
}

struct etcd_txn_opened etcd_txn_open(struct protobuf_out *m, enum txn_branch branch)
{
	return open_op(m, branch, OP_TXN);
}

void etcd_txn_close(struct protobuf_out *m, struct etcd_txn_opened opened)
{
	protobuf_close(m, opened.txn);
	protobuf_close(m, opened.request);
}

void etcd_txn_range(struct protobuf_out *m, enum txn_branch branch, const struct etcd_txn_range *r)
{
	struct etcd_txn_opened op = open_op(m, branch, OP_RANGE);

	protobuf_text(m, RANGE_KEY, r->key);
	if (r->end != NULL)
		protobuf_text(m, RANGE_END, r->end);
	if (r->limit > 0)
		protobuf_int(m, RANGE_LIMIT, r->limit);
	if (r->before > 0 && r->before != INT64_MAX)
		protobuf_int(m, RANGE_LAST_MADE, r->before - 1);
	if (r->order != TXN_BY_KEY) {
		protobuf_int(m, RANGE_ORDER, r->order);
		protobuf_int(m, RANGE_TARGET, BY_CREATION);
	}
	if (r->keys_only)
		protobuf_int(m, RANGE_KEYS_ONLY, true);
	etcd_txn_close(m, op);
}

void etcd_txn_get(struct protobuf_out *m, enum txn_branch branch, const char *key)
{
	etcd_txn_range(m, branch, &(struct etcd_txn_range){.key = key});
}

void etcd_txn_delete(struct protobuf_out *m, enum txn_branch branch, const char *key)
{
	struct etcd_txn_opened op = open_op(m, branch, OP_DELETE);

	protobuf_text(m, DELETE_KEY, key);
	etcd_txn_close(m, op);
}

void etcd_txn_put(struct protobuf_out *m, enum txn_branch branch, const char *key, const char *value, int64_t lease)
{
	struct etcd_txn_opened op = open_op(m, branch, OP_PUT);

	protobuf_text(m, PUT_KEY, key);
	protobuf_text(m, PUT_VALUE, value);
	protobuf_int(m, PUT_LEASE, lease);
	etcd_txn_close(m, op);
}

int64_t etcd_txn_revision(struct bytes answer)
{
	return protobuf_number(protobuf_bytes(answer, TXN_HEADER, 0), HEADER_REVISION);
}

bool etcd_txn_succeeded(struct bytes answer)
{
	return protobuf_number(answer, TXN_SUCCEEDED) != 0;
}

struct bytes etcd_txn_kvs(struct bytes answer, size_t i)
{
	return protobuf_bytes(protobuf_bytes(answer, TXN_RESPONSES, i), OP_RANGE, 0);
}

struct bytes etcd_txn_inner(struct bytes answer, size_t i)
{
	return protobuf_bytes(protobuf_bytes(answer, TXN_RESPONSES, i), OP_TXN, 0);
}

bool etcd_txn_next(struct bytes *kvs, struct etcd_kv *kv)
{
	struct protobuf_field field;

	*kv = (struct etcd_kv){.made = 0};
	while (protobuf_next(kvs, &field)) {
		if (field.number != RANGE_KVS)
			continue;
		kv->key = protobuf_bytes(field.bytes, KV_KEY, 0);
		kv->value = protobuf_bytes(field.bytes, KV_VALUE, 0);
		kv->made = protobuf_number(field.bytes, KV_MADE);
		kv->put = protobuf_number(field.bytes, KV_PUT);
		kv->version = protobuf_number(field.bytes, KV_VERSION);
		kv->lease = protobuf_number(field.bytes, KV_LEASE);
		return true;
	}
	return false;
}

bool etcd_txn_first(struct bytes answer, size_t i, struct etcd_kv *kv)
{
	struct bytes kvs = etcd_txn_kvs(answer, i);

	return etcd_txn_next(&kvs, kv);
}
