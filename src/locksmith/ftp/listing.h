/* SPDX-License-Identifier: MIT */
/* locksmith/ftp/listing.h - the entries of a lock directory, and the verdict. No I/O, no clock. */
#ifndef SEMLOCK_LOCKSMITH_FTP_LISTING_H
#define SEMLOCK_LOCKSMITH_FTP_LISTING_H

#include "locksmith/ftp/owner_sign.h"

#include <stdbool.h>
#include <stddef.h>

#define LISTING_MOST 64 /* signs; a directory with more is busy */

struct listing {
	struct owner_sign sign[LISTING_MOST];
	size_t signs;
	size_t foreign; /* entries that are no signs */
	int64_t empty_since; /* since when the directory has been there and empty; NEVER: it is not */
};

void listing_clear(struct listing *l);

/* Adds an entry's name; "." and ".." are no entries. */
void listing_add(struct listing *l, const char *name);

bool listing_empty(const struct listing *l);

/* The sign of that name, or NULL; some servers do not keep upper and lower case apart. */
const struct owner_sign *listing_find(const struct listing *l, const char *name);

/* Fills in since when each sign of l, and its emptiness, has been unchanged; before: the listing of the look
   before, now: the moment when l had arrived. By our own clock: a silent owner is found without the clocks of
   the server and the owner. */
void listing_note_ages(struct listing *l, const struct listing *before, int64_t now);

/* The first sign that was unchanged for longer than its ttl when l was requested, at the moment asked;
   NULL if none. */
const struct owner_sign *listing_silent(const struct listing *l, int64_t asked);

/* True if the owner of mine holds the lock: its sign is in the directory, and nothing else. */
bool listing_holds(const struct listing *l, const struct owner_sign *mine);

#endif
