/* SPDX-License-Identifier: MIT */
/* locksmith/etcd/etcd_wire.h - a transaction of etcd as bytes: its conditions and requests, and the
 * keys in its responses. */
#ifndef SEMLOCK_LOCKSMITH_ETCD_ETCD_WIRE_H
#define SEMLOCK_LOCKSMITH_ETCD_ETCD_WIRE_H

#include "locksmith/etcd/protobuf.h"

#define ETCD_KEY 700 /* room for a key, and for a value */

/* The keys from first up to, but without, end. */
struct etcd_span {
	char first[ETCD_KEY], end[ETCD_KEY];
};

/* TXN_SUCCESS: etcd carries the request out if all conditions of the transaction are met.
 * TXN_FAILURE: if one is not. */
enum txn_branch { TXN_SUCCESS = 2, TXN_FAILURE = 3 };

enum txn_order { TXN_BY_KEY = 0, TXN_OLDEST_FIRST = 1, TXN_NEWEST_FIRST = 2 };

/* The keys that a request asks for. */
struct etcd_wire_range {
	/* from key up to, but without, end; end NULL or "": that key alone */
	const char *key, *end;
	unsigned int limit; /* at most this many; 0: all */
	int64_t before;     /* only keys made before this revision; 0 or INT64_MAX: all */
	enum txn_order order;
	bool keys_only; /* no values */
};

enum txn_result { TXN_EQUAL = 0, TXN_GREATER = 1, TXN_LESS = 2 };

/* Add a condition: each key from KEY up to, but without, END was made at a revision that compares
 * with REVISION as RESULT says.  END NULL: only KEY.  To etcd, an empty range is like a key made at
 * revision 0. */
void etcd_wire_condition(struct protobuf_out *message, const char *key, const char *end,
    enum txn_result result, int64_t revision);

/* Add the condition that KEY was made at REVISION; 0: that KEY does not exist. */
void etcd_wire_made_at(struct protobuf_out *message, const char *key, int64_t revision);

/* Add the condition that KEY was last put at REVISION. */
void etcd_wire_put_at(struct protobuf_out *message, const char *key, int64_t revision);

void etcd_wire_range(struct protobuf_out *message, enum txn_branch branch,
    const struct etcd_wire_range *range);
void etcd_wire_put(struct protobuf_out *message, enum txn_branch branch, const char *key,
    const char *value, int64_t lease);
void etcd_wire_delete(struct protobuf_out *message, enum txn_branch branch, const char *key);

/* Begin a transaction inside a transaction.  All that is added until etcd_wire_close() belongs to
 * the inner one. */
struct etcd_wire_opened {
	size_t request, txn;
};
struct etcd_wire_opened etcd_wire_open(struct protobuf_out *message, enum txn_branch branch);
void etcd_wire_close(struct protobuf_out *message, struct etcd_wire_opened opened);

/* A key in a response. */
struct etcd_key {
	struct protobuf key, value;
	int64_t made;    /* its create_revision; 0: there is no key */
	int64_t put;     /* its mod_revision */
	int64_t version; /* how often it was put */
	int64_t lease;
};

/* The revision of the store at which an answer was given. */
int64_t etcd_wire_revision(struct protobuf answer);

/* True if all conditions were met. */
bool etcd_wire_succeeded(struct protobuf answer);

/* The keys in the i-th response, counted from 0. */
struct protobuf etcd_wire_keys(struct protobuf answer, size_t i);

/* The answer to an inner transaction, which is the i-th response, counted from 0. */
struct protobuf etcd_wire_inner(struct protobuf answer, size_t i);

/* Move the next key of *KEYS into *KEY.  Returns false if there is none. */
bool etcd_wire_next(struct protobuf *keys, struct etcd_key *key);

/* Copy the first key in the i-th response to *KEY.  Returns false, with *KEY all 0, if there is
 * none. */
bool etcd_wire_first(struct protobuf answer, size_t i, struct etcd_key *key);

#endif
