/* owners/waiters.h - who waits for a lock, in the order in which they will be served. */
#ifndef SEMLOCK_OWNERS_WAITERS_H
#define SEMLOCK_OWNERS_WAITERS_H

#include "owners/owners.h"
#include "owners/proc_snapshot.h"

/* Add those who wait to FOUND: first who stands in the kernel's own queue for the lock (the
 * first of semlock's queue does, and everybody who does not know that queue), in its order,
 * then those behind by their tickets. */
void waiters_add(struct owners *found, const struct proc_snapshot *snapshot, unsigned kinds);

#endif
