/* run/messages.h - messages about a lock that is busy; as flock, in flock(1)'s words. */
#ifndef SEMLOCK_RUN_MESSAGES_H
#define SEMLOCK_RUN_MESSAGES_H

#include "cli/request.h"
#include "lock/lock.h"

/* What messages call LOCK; the text may be overwritten by the next call. */
const char *messages_label(const struct request *request, const struct lock *lock);

/* Why semlock does not wait for a busy lock, or no longer. */
enum busy_why {
	BUSY_NOW,      /* -n */
	BUSY_TIMEOUT,  /* the wait's time is up */
	BUSY_CROWDED,  /* --queue-max */
	BUSY_INHERITED /* an ancestor holds it, or a descriptor that this process has inherited */
};

/* LOCK is busy, and held by such a process: on a terminal, or with --verbose; never with -q. */
void messages_busy(const struct request *request, const struct lock *lock, enum busy_why why);

#endif
