/* lock/lockset.h - more than one lock at once: all or none, and without deadlock. */
#ifndef SEMLOCK_LOCK_LOCKSET_H
#define SEMLOCK_LOCK_LOCKSET_H

#include "lock/lock.h"

/* Take the COUNT locks at LOCKS, which may be put into another order for it, under one
 * WAIT_OPTIONS.  On BUSY or FAILED none is held, and *CULPRIT is the one it failed at. */
enum outcome lockset_take(struct lock *locks, unsigned count, const struct wait_options *wait_options,
    const struct lock **culprit, struct error *error);

/* Let all of them go. */
void lockset_forget(struct lock *locks, unsigned count);

#endif
