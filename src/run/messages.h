/* run/messages.h - messages about a lock that is busy; as flock, in flock(1)'s words. */
#ifndef SEMLOCK_RUN_MESSAGES_H
#define SEMLOCK_RUN_MESSAGES_H

#include "cli/request.h"
#include "owners/owners.h"

/* Put into TEXT "held by 4242 (rsync) since 12:01:07", of the holder at this moment, which may be another than
 * the one that LOCK was busy for; OTHERWISE if none is found. */
void messages_holder(const struct lock *lock, const char *otherwise, char *text, size_t size);

/* Fill FOUND with the owners of LOCK as a message names them.  Returns false when they cannot be found; else
 * owners_forget() has to follow. */
bool messages_owners(struct owners *found, const struct lock *lock);

/* What messages call LOCK; the text may be overwritten by the next call. */
const char *messages_label(const struct request *request, const struct lock *lock);

/* LOCK is busy, and held by such a process: on a terminal, or with --verbose; never with -q.
 * WAITED: the wait's time is up. */
void messages_busy(const struct request *request, const struct lock *lock, bool waited);

#endif
