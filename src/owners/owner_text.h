/* SPDX-License-Identifier: MIT */
/* owners/owner_text.h - a lock's holder, in words for people. */
#ifndef SEMLOCK_OWNERS_OWNER_TEXT_H
#define SEMLOCK_OWNERS_OWNER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "owners/owners.h"

enum { OWNER_COMMAND_COLUMNS = 60 }; /* of a command in a message */

/* MOMENT, nanoseconds after 1970, in local time, at most 11 characters: "12:01:07" today,
 * "11-20 12:01" this year, else "2025-11-20". */
void moment_text(int64_t moment, char *text, size_t size);

/* LOCK's name, or "descriptor 8 (/run/x.lock)". */
void lock_text(const struct lock *lock, char *text, size_t size);

/* What stands in the place of HOLDER's command, if its record does not prove it alive: at most 31
 * characters, "(has ended; free to take)".  Else "". */
void verdict_text(const struct owner *holder, char *text, size_t size);

/* Why HOLDER cannot be signalled, as half a sentence; "" if it can. */
void doubt_text(const struct owner *holder, char *text, size_t size);

/* "held by 4242 (rsync -a /srv) since 12:01:07", without a full stop; at most COLUMNS characters of the command.
 * Returns false when there is no holder. */
bool owner_text(const struct owners *found, size_t columns, char *text, size_t size);

/* Fill FOUND with the owners of LOCK that owner_text() is to name.  Returns false when they cannot be found;
 * else owners_forget() has to follow. */
bool owners_for_text(struct owners *found, const struct lock *lock);

/* Both: the holder of LOCK at this moment, in TEXT; OTHERWISE if none is found. */
void holder_text(const struct lock *lock, const char *otherwise, char *text, size_t size);

#endif
