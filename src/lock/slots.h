/* SPDX-License-Identifier: MIT */
/* lock/slots.h - counting semaphores (-j): up to N holders of one lock, each in a slot.
 *
 * A slot is a lock on one byte, which the kernel releases when its holder dies.  Where the method's own
 * lock is of another kind (flock), it is taken first, shared: it excludes plain exclusive holders. */
#ifndef SEMLOCK_LOCK_SLOTS_H
#define SEMLOCK_LOCK_SLOTS_H

#include "lock/lock.h"

/* Take the first free slot of LOCK, and set LOCK->slot.  BUSY: none is free. */
enum outcome slots_try(struct lock *lock, struct error *error);

/* Sleep until a slot is free, and take it; BUSY when DEADLINE has passed. */
enum outcome slots_sleep(struct lock *lock, const struct wait_options *wait, struct error *error);

/* Unlock the slot, if there is one. */
void slots_drop(struct lock *lock);

#endif
