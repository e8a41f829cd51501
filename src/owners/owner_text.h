/* owners/owner_text.h - who holds a lock, in words for people. */
#ifndef SEMLOCK_OWNERS_OWNER_TEXT_H
#define SEMLOCK_OWNERS_OWNER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "owners/owners.h"

/* When MOMENT, nanoseconds after 1970, was, in local time and at most 11 characters:
 * "12:01:07" today, "11-20 12:01" this year, "2025-11-20" before. */
void moment_text(int64_t moment, char *text, size_t size);

/* LOCK's name, or "descriptor 8 (/run/x.lock)". */
void lock_text(const struct lock *lock, char *text, size_t size);

/* What is to be said of HOLDER's lock instead of a command, in up to 31 characters and in
 * parentheses: "(has ended; free to take)".  "" if there is nothing. */
void verdict_text(const struct owner *holder, char *text, size_t size);

/* Why HOLDER cannot be stopped: a half sentence.  "" if nothing is known against it. */
void doubt_text(const struct owner *holder, char *text, size_t size);

/* "held by 4242 (rsync -a /srv) since 12:01:07", without a full stop.  Returns false when
 * nobody holds it. */
bool owner_text(const struct owners *found, char *text, size_t size);

#endif
