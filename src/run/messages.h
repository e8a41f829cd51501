/* run/messages.h - messages about a lock that is busy; as flock, in flock(1)'s words. */
#ifndef SEMLOCK_RUN_MESSAGES_H
#define SEMLOCK_RUN_MESSAGES_H

#include "cli/request.h"
#include "lock/lock.h"

/* What messages call LOCK; the text may be overwritten by the next call. */
const char *messages_label(const struct request *request, const struct lock *lock);

/* LOCK is busy, and held by such a process: on a terminal, or with --verbose; never with -q.
 * WAITED: the wait's time is up. */
void messages_busy(const struct request *request, const struct lock *lock, bool waited);

#endif
