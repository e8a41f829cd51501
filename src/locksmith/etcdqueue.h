/* etcdqueue - who stands in front of us: the keys of a lock in the order in which they were made.
   JSON in, verdict out; no I/O. */
#ifndef LOCKSMITH_ETCDQUEUE_H
#define LOCKSMITH_ETCDQUEUE_H

#include "locksmith/options.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct etcdqueue_place {
	bool found; /* our own key is there */
	bool blocked;
	char blocker[1600]; /* the key, in base64, whose end may let us in */
	char who[400];	    /* the holder, for people and --who */
};

/* An integer that the gateway writes as a string, as a number, or, being 0, not at all. */
int64_t etcdqueue_int(const json_t *object, const char *key);

/* Our place, given the keys in ascending order of creation. own is our key's create_revision, or
   INT64_MAX to ask what a newcomer would find. */
void etcdqueue_place(const json_t *kvs, enum mode mode, unsigned int slots, int64_t own,
    struct etcdqueue_place *place);

/* What the i-th key tells, as the fields of a WAIT line, into text. True if it holds the lock. */
bool etcdqueue_holds(const json_t *kvs, size_t i, char *text, size_t size);

/* The value that tells others about us. */
void etcdqueue_value(const struct options *o, char *value, size_t size);

#endif
