/* SPDX-License-Identifier: MIT */
/* locksmith/etcd/etcdqueue.h - our place in the queue of a lock: the requests for it, and what the responses mean. No I/O.

   An exclusive key waits for every key made before it; a shared one for those that are not shared; a
   slot for those that are not slots, and until fewer than N slots are before it. Shared keys have a
   part of the range of their own, and so have slots: the nearest key to wait for is found by its
   revision, and no value is read, however long the queue is. */
#ifndef SEMLOCK_LOCKSMITH_ETCD_ETCDQUEUE_H
#define SEMLOCK_LOCKSMITH_ETCD_ETCDQUEUE_H

#include "locksmith/common/options.h"
#include "locksmith/etcd/etcdtxn.h"

#include <stdbool.h>
#include <stdint.h>

/* The keys from first up to, but without, end. */
struct etcdqueue_span {
	char first[ETCD_KEY], end[ETCD_KEY];
};

/* Where the keys of a lock are, or the marks of its holders (etcdlock.h). */
struct etcdqueue_keys {
	struct etcdqueue_span all;
	struct etcdqueue_span fellows; /* those of our mode, which are not waited for; may be empty */
};

/* The queue of a lock, for a mode. */
struct etcdqueue {
	const struct options *options;
	struct etcdqueue_keys keys, marks;
};

struct etcdqueue_place {
	bool found; /* our own key is there */
	bool blocked;
	struct etcdqueue_span watch; /* a change of these keys may make the place free; end "": one key */
	bool puts;		     /* watch for puts, not only for deletions */
	unsigned int slot;	     /* a number that is free, if not blocked */
	char who[400];		     /* the holder, if it is known, for messages */
};

/* Fills in the ranges of the keys and marks of lock NAME, for the mode of o. */
void etcdqueue_init(struct etcdqueue *q, const char *name, const struct options *o);

/* Adds the requests that tell the place of a key made at revision before (INT64_MAX: of a newcomer) to a
   transaction. Returns how many. */
size_t etcdqueue_ask(const struct etcdqueue *q, struct pb_out *m, enum txn_branch branch, int64_t before);

/* Adds the conditions under which a key made at that revision (INT64_MAX: of a newcomer) has nothing to wait for.
   Without slots; a shared key may have nothing to wait for without them. */
void etcdqueue_free(const struct etcdqueue *q, struct pb_out *m, int64_t revision);

/* Fills *place, except place->found, from the answer to the requests. */
void etcdqueue_place(const struct etcdqueue *q, struct pb answer, struct etcdqueue_place *place);

/* True if a key out of those of the lock holds it: it has its mark, or it is the FIRST and another program's. */
bool etcdqueue_holds(const struct etcd_kv *kv, struct pb marks, bool first);

/* How many keys made before that revision wait; KEYS has all in order. */
unsigned int etcdqueue_waiting(struct pb keys, struct pb marks, int64_t revision);

/* True if one of KVS was put by the same holder as kv. */
bool etcdqueue_pair(struct pb kvs, const struct etcd_kv *kv);

/* True if it is the mark of a lock that is below this one in name. */
bool etcdqueue_is_mark(const struct etcd_kv *kv);

/* The value of a key or a mark, as the fields of a WAIT line. */
void etcdqueue_describe(const struct etcd_kv *kv, char *text, size_t size);

/* Makes the value of our key and mark. */
void etcdqueue_value(const struct options *o, char *value, size_t size);

#endif
