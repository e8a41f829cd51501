/* run/transit.h - waiters that have just taken a lock, and may give it back.
 *
 * A waiter that has the lock looks for an earlier ticket while it still has its own, and gives the
 * lock back if there is one.  Only then it gives its ticket up, and starts its command.  So a holder
 * that has a ticket in the queue is not to be stopped: that would end a job that only waits. */
#ifndef SEMLOCK_RUN_TRANSIT_H
#define SEMLOCK_RUN_TRANSIT_H

#include <stdbool.h>

#include "owners/owners.h"

/* Does HOLDER, among those FOUND, have a ticket in LOCK's queue?  True also if that cannot be seen, and
 * other processes wait.
 * Asked after the look, and before a proof that HOLDER still holds: then a process without one has
 * begun its command. */
bool transit_seen(const struct owners *found, const struct owner *holder, const struct lock *lock);

#endif
