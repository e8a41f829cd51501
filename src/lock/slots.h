/* SPDX-License-Identifier: MIT */
/* lock/slots.h - slots (-j): up to N holders of one lock, each in a slot.
 *
 * A slot is a lock on one byte, which the kernel releases when its holder dies.  If the method's
 * own lock is of another kind (flock), each holder of a slot first takes that lock, shared, which
 * excludes plain exclusive holders. */
#ifndef SEMLOCK_LOCK_SLOTS_H
#define SEMLOCK_LOCK_SLOTS_H

#include "lock/lock.h"

/* Take the first free slot of LOCK, or as many as --take asks for, and set LOCK->slot and
 * LOCK->kernel.slots.  BUSY: too few are free, and none is taken. */
enum outcome slots_try(struct lock *lock, struct error *error);

/* The same even if another process collects slots (--take), for a caller that does not wait, and so
 * cannot deadlock with that process. */
enum outcome slots_try_past_collector(struct lock *lock, struct error *error);

/* Sleep until a slot is free, and take it; with --take, take each as soon as it is free.  Returns
 * BUSY when DEADLINE has passed, and with --take also after half a second: then the caller must
 * drop what was collected. */
enum outcome slots_sleep(struct lock *lock, const struct deadline *deadline, struct error *error);

/* Has LOCK taken SLOT?  False for a slot that a caller's descriptor carried already. */
bool slots_has(const struct lock *lock, unsigned slot);

/* Does LOCK ask for several slots (--take)?  Then its first waiter collects them. */
bool slots_collects(const struct lock *lock);

/* Unlock the slots that LOCK holds, if any. */
void slots_drop(struct lock *lock);

/* "0,3": the slots that LOCK holds; NULL without memory.  The text lasts as long as the process. */
const char *slots_text(const struct lock *lock);

#endif
