/* etcdqueue - who stands in front of us: the keys of a lock in the order in which they were made.
   JSON in, verdict out; no I/O. */
#ifndef LOCKSMITH_ETCDQUEUE_H
#define LOCKSMITH_ETCDQUEUE_H

#include "locksmith/common/options.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* A holder's mark (etcdmark.h) whose key has gone: it may hold the lock still. */
struct etcdqueue_orphan {
	char mark[1600];  /* the mark's key and value, in base64 */
	char value[1400];
	int64_t owner;	  /* the lease of its key */
	int64_t seconds;  /* how long that was for */
	int64_t revision; /* when the mark was last put */
	bool lapses;	  /* it is under a lease now, and goes by itself */
};

struct etcdqueue_place {
	bool found; /* our own key is there */
	bool blocked;
	bool orphaned; /* blocked by nothing but orphans, of which this is one */
	struct etcdqueue_orphan orphan;
	unsigned int fellows; /* holders of slots before us */
	char blocker[1600]; /* the key, in base64, whose end may let us in */
	char who[400];	    /* the holder, for people and --who */
};

/* An integer that the gateway writes as a string, as a number, or, being 0, not at all. */
int64_t etcdqueue_int(const json_t *object, const char *key);

/* Our place, given the keys in ascending order of creation. own is our key's create_revision, or
   INT64_MAX to ask what a newcomer would find. */
void etcdqueue_place(const json_t *kvs, enum mode mode, unsigned int slots, int64_t own,
    struct etcdqueue_place *place);

/* Counts in the orphans among the marks, after etcdqueue_place. */
void etcdqueue_orphans(const json_t *kvs, const json_t *marks, enum mode mode, unsigned int slots,
    struct etcdqueue_place *place);

/* True if the i-th mark is an orphan; what it tells into text. */
bool etcdqueue_orphan(
    const json_t *kvs, const json_t *marks, size_t i, char *text, size_t size);

/* What the i-th key tells, as the fields of a WAIT line, into text. True if it holds the lock. */
bool etcdqueue_holds(const json_t *kvs, size_t i, char *text, size_t size);

/* The value that tells others about us. */
void etcdqueue_value(const struct options *o, char *value, size_t size);

#endif
