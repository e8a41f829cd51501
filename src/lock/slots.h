/* lock/slots.h - counting semaphores: up to N holders of one lock, each in a slot.
 *
 * A slot is a lock of its own on one byte, so the kernel frees the slot of whoever
 * dies.  Where the method's own lock is of another kind (flock), it is taken as well,
 * shared: that is the gate, at which slot holders and plain exclusive holders meet. */
#ifndef SEMLOCK_LOCK_SLOTS_H
#define SEMLOCK_LOCK_SLOTS_H

#include "sys/deadline.h"
#include "lock/lock.h"

/* The most slots that one lock can have. */
enum { SLOTS_MOST = 4096 };

/* Take the first free slot of LOCK, and set LOCK->slot.  The gate is held already.
 * BUSY: none is free. */
enum outcome slots_try(struct lock *lock, struct error *error);

/* Sleep until one of the slots is free, and take it; BUSY when DEADLINE has passed. */
enum outcome slots_sleep(struct lock *lock, const struct deadline *deadline, struct error *error);

/* Give the slot back, if there is one. */
void slots_drop(struct lock *lock);

#endif
