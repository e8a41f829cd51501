/* SPDX-License-Identifier: MIT */
/* lock/lockset.h - more than one lock at once (-f): all or none, and without deadlock. */
#ifndef SEMLOCK_LOCK_LOCKSET_H
#define SEMLOCK_LOCK_LOCKSET_H

#include "lock/take.h"

/* Take the COUNT locks at LOCKS, sorted for it into another order, under one WAIT.  On BUSY or FAILED
 * none is held, and *CULPRIT is the lock at which it failed. */
enum outcome lockset_take(struct lock *locks, unsigned count, const struct wait_options *wait,
    const struct lock **culprit, struct error *error);

void lockset_release(struct lock *locks, unsigned count);

#endif
