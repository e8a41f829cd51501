/* SPDX-License-Identifier: MIT */
/* lock/slots.h - slots (-j): up to N holders of one lock, each in a slot.
 *
 * A slot is a lock on one byte, which the kernel releases when its holder dies.  Where the method's
 * own lock is of another kind (flock), it is taken first, shared: it excludes plain exclusive
 * holders. */
#ifndef SEMLOCK_LOCK_SLOTS_H
#define SEMLOCK_LOCK_SLOTS_H

#include "lock/lock.h"

/* Take the first free slot of LOCK, or as many as it is to take, and set LOCK->slot and
 * LOCK->kernel.slots.  BUSY: too few are free, and none is taken. */
enum outcome slots_try(struct lock *lock, struct error *error);

/* The same, whether or not another process collects slots (--take): for a caller that does not
 * wait, and so cannot deadlock with it. */
enum outcome slots_try_past_collector(struct lock *lock, struct error *error);

/* Sleep until a slot is free, and take it; of several, take each as soon as it is free.  BUSY when
 * DEADLINE has passed: what has been collected has to be dropped. */
enum outcome slots_sleep(struct lock *lock, const struct deadline *deadline, struct error *error);

/* Is LOCK to have several slots (--take)?  Then its first waiter collects them. */
bool slots_collects(const struct lock *lock);

/* Unlock the slots, if there are any. */
void slots_drop(struct lock *lock);

/* "0,3": the slots that LOCK holds; NULL without memory.  It lasts until the process ends. */
const char *slots_text(const struct lock *lock);

#endif
