/* SPDX-License-Identifier: MIT */
/* locksmith/etcd/etcd_queue.h - finds our place in the queue of a lock: the requests to send, and
 * what the responses mean.  No I/O.
 *
 * Each client has a key in the queue.  An exclusive key waits for every key made before it.  A
 * shared key waits for the earlier keys that are not shared.  A key for a slot waits for the
 * earlier keys that are not for slots, and until fewer than N keys for slots are before it.  Shared
 * keys have a range of their own, and so have keys for slots.  So two requests, for the keys below
 * and above that range, find the nearest key to wait for, by its revision.  They read no value,
 * however long the queue is. */
#ifndef SEMLOCK_LOCKSMITH_ETCD_ETCD_QUEUE_H
#define SEMLOCK_LOCKSMITH_ETCD_ETCD_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "locksmith/common/options.h"
#include "locksmith/etcd/etcd_wire.h"

/* The key ranges of a lock, for a client of one mode. */
struct etcd_queue {
	const struct options *options;
	struct etcd_span all;
	/* the keys of our mode, for which we do not wait; none if the mode is exclusive */
	struct etcd_span peers;
	struct etcd_span slots;   /* the keys of clients that want a slot */
	struct etcd_span numbers; /* the keys of slot numbers that are taken (etcd_key.h) */
};

struct etcd_place {
	bool found; /* our own key exists */
	bool blocked;
	/* watch these keys, because a change may unblock us; end "": only the key FIRST */
	struct etcd_span watch;
	bool puts;         /* watch for puts, not only for deletions */
	unsigned int slot; /* if not BLOCKED: a slot number that is free */
	char who[400];     /* the holder, if known, for messages */
};

/* Fill *QUEUE with the key ranges of the lock NAME, for the mode in OPTIONS. */
void etcd_queue_init(struct etcd_queue *queue, const char *name, const struct options *options);

/* Add requests to BRANCH of a transaction: they find the place of a key made at the revision BEFORE
 * (INT64_MAX: a new key).  Returns how many requests were added. */
size_t etcd_queue_ask(const struct etcd_queue *queue, struct protobuf_out *request,
    enum txn_branch branch, int64_t before);

/* Add the conditions under which a key made at REVISION (INT64_MAX: a new key) has nothing to wait
 * for.  Do not call this for slots.  For a shared key the conditions are stricter than needed: they
 * also fail if a newer exclusive key exists. */
void etcd_queue_require_free(const struct etcd_queue *queue, struct protobuf_out *request,
    int64_t revision);

/* Fill *place, except place->found, from ANSWER, the answer to the requests of etcd_queue_ask(). */
void etcd_queue_place(const struct etcd_queue *queue, struct protobuf answer,
    struct etcd_place *place);

/* True if KEY holds the lock: its value says so.  A key of another program has no value; it holds
 * the lock if it is the FIRST in the queue. */
bool etcd_queue_holds(const struct etcd_key *key, bool first);

/* The slot number in the value of KEY, or -1. */
int etcd_queue_slot(const struct etcd_key *key);

/* True if KEY only says that a slot's number is taken; its holder has another key, too. */
bool etcd_queue_is_number(const struct etcd_queue *queue, const struct etcd_key *key);

/* Count the waiters whose keys were made before REVISION.  KEYS: all keys, the oldest first. */
unsigned int etcd_queue_waiting(struct protobuf keys, int64_t revision);

/* Write the value of KEY into TEXT (SIZE bytes), as the fields of a WAIT line. */
void etcd_queue_describe(const struct etcd_key *key, char *text, size_t size);

/* Write the value of our key into VALUE (SIZE bytes): with HOLDS, that of a holder's key, else that
 * of a waiter's.  SLOT is the holder's slot; negative: none. */
void etcd_queue_value(const struct options *options, bool holds, int slot, char *value,
    size_t size);

#endif
