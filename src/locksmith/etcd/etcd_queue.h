/* SPDX-License-Identifier: MIT */
/* locksmith/etcd/etcd_queue.h - our place in the queue of a lock: the requests for it, and what the
 * responses mean.  No I/O.
 *
 * An exclusive key waits for every key made before it; a shared one for those that are not shared;
 * a slot for those that are not slots, and until fewer than N slots are before it.  Shared keys and
 * slots each have a part of the range for themselves, so a request finds the nearest key to wait
 * for by its revision, and reads no value, however long the queue is. */
#ifndef SEMLOCK_LOCKSMITH_ETCD_ETCD_QUEUE_H
#define SEMLOCK_LOCKSMITH_ETCD_ETCD_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "locksmith/common/options.h"
#include "locksmith/etcd/etcd_wire.h"

/* The queue of a lock, for a mode. */
struct etcd_queue {
	const struct options *options;
	struct etcd_span all;
	/* the keys of our mode, which we do not wait for; may be empty */
	struct etcd_span peers;
	struct etcd_span slots;   /* the keys of locks with slots, */
	struct etcd_span numbers; /* and the numbers that are taken (etcd_key.h) */
};

struct etcd_place {
	bool found; /* our own key exists */
	bool blocked;
	/* a change of these keys may unblock us; end "": one key */
	struct etcd_span watch;
	bool puts;         /* watch for puts, not only for deletions */
	unsigned int slot; /* a number that is free, if not blocked */
	char who[400];     /* the holder, if known, for messages */
};

/* Fill the ranges of the keys of lock NAME, for the mode of options. */
void etcd_queue_init(struct etcd_queue *queue, const char *name, const struct options *options);

/* Add the requests that find the place of a key made at the revision BEFORE (INT64_MAX: a new key)
 * to a transaction.  Returns how many. */
size_t etcd_queue_ask(const struct etcd_queue *queue, struct protobuf_out *request,
    enum txn_branch branch, int64_t before);

/* Add the conditions under which a key made at REVISION (INT64_MAX: a new key) has nothing to wait
 * for.  Not for slots.  For a shared key they are sufficient, not necessary. */
void etcd_queue_require_free(const struct etcd_queue *queue, struct protobuf_out *request,
    int64_t revision);

/* Fill *place, except place->found, from ANSWER, the answer to the requests of etcd_queue_ask(). */
void etcd_queue_place(const struct etcd_queue *queue, struct protobuf answer,
    struct etcd_place *place);

/* True if the key holds the lock: its value says so, or it is the FIRST and another program's. */
bool etcd_queue_holds(const struct etcd_key *key, bool first);

/* The number of the slot that a key says it holds, or -1. */
int etcd_queue_slot(const struct etcd_key *key);

/* True if it is the key of a slot's number, beside its holder's key. */
bool etcd_queue_is_number(const struct etcd_queue *queue, const struct etcd_key *key);

/* How many keys made before REVISION wait; KEYS has all in order. */
unsigned int etcd_queue_waiting(struct protobuf keys, int64_t revision);

/* The value of a key, as the fields of a WAIT line. */
void etcd_queue_describe(const struct etcd_key *key, char *text, size_t size);

/* Make the value of our key while it waits, and once it HOLDS; slot < 0: none. */
void etcd_queue_value(const struct options *options, bool holds, int slot, char *value,
    size_t size);

#endif
