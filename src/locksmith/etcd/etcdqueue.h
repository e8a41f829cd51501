/* locksmith/etcd/etcdqueue.h - our place in the queue of a lock: the requests for it, and what the responses mean. No I/O.

   An exclusive key waits for every key made before it; a shared one for those that are not shared; a
   slot for those that are not slots, and until fewer than N slots are before it. Shared keys have a
   part of the range of their own, and so have slots: the nearest key to wait for is found by its
   revision, and no value is read, however long the queue is. */
#ifndef SEMLOCK_LOCKSMITH_ETCD_ETCDQUEUE_H
#define SEMLOCK_LOCKSMITH_ETCD_ETCDQUEUE_H

#include "locksmith/etcd/base64.h"
#include "locksmith/common/options.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define ETCD_KEY ((int)BASE64_SIZE(700)) /* a key in base64 */

/* The keys from first up to, but without, end. */
struct etcdqueue_span {
	char first[ETCD_KEY], end[ETCD_KEY];
};

/* Where the keys of a lock are, or the marks of its holders (etcdmark.h). */
struct etcdqueue_keys {
	struct etcdqueue_span all;
	struct etcdqueue_span fellows; /* those of our mode, which are not waited for; may be empty */
};

struct etcdqueue_place {
	bool found; /* our own key is there */
	bool blocked;
	struct etcdqueue_span watch; /* a change of these keys may let us in; end "": one key */
	bool puts;		     /* watch for puts, not only for deletions */
	unsigned int slot;	     /* a number that is free, if not blocked */
	char who[400];		     /* the holder, if it is known, for messages */
};

/* An integer that the gateway writes as a string, as a number, or, being 0, not at all. */
int64_t etcdqueue_int(const json_t *object, const char *key);

/* Fills in the ranges of the keys of lock NAME, for a mode. */
void etcdqueue_keys(struct etcdqueue_keys *keys, const char *name, enum lease_mode mode);

/* The requests that tell the place of a key made at revision before (INT64_MAX: of a newcomer). */
json_t *etcdqueue_questions(const struct etcdqueue_keys *keys, const struct etcdqueue_keys *marks,
    const struct options *o, int64_t before);

/* The conditions under which a key made at that revision (INT64_MAX: of a newcomer) has nothing to wait for.
   Without slots; a shared key may have nothing to wait for without them. */
json_t *etcdqueue_free(const struct etcdqueue_keys *keys, const struct etcdqueue_keys *marks,
    enum lease_mode mode, int64_t revision);

/* Fills *place, except place->found, from the responses to them. */
void etcdqueue_place(const json_t *responses, const struct etcdqueue_keys *keys,
    const struct etcdqueue_keys *marks, const struct options *o, struct etcdqueue_place *place);

/* The kvs of the i-th response. */
const json_t *etcdqueue_kvs(const json_t *responses, size_t i);

/* True if KEYS, which holds all in order, have one at i that holds the lock: it has its mark, or it is
   the first and another program's. */
bool etcdqueue_holds(const json_t *keys, const json_t *marks, size_t i);

/* How many keys made before that revision wait; KEYS has all in order. */
unsigned int etcdqueue_waiting(const json_t *keys, const json_t *marks, int64_t revision);

/* True if another one of KVS was put by the same holder as kv. */
bool etcdqueue_pair(const json_t *kvs, const json_t *kv);

/* True if it is the mark of a lock that is below this one in name. */
bool etcdqueue_is_mark(const json_t *kv);

/* The value of a key or a mark, as the fields of a WAIT line. */
void etcdqueue_describe(const json_t *kv, char *text, size_t size);

/* Makes the value of our key and mark. */
void etcdqueue_value(const struct options *o, char *value, size_t size);

#endif
