/* lock/kernel_waiters.h - who sleeps in the kernel's own queue for a lock. */
#ifndef SEMLOCK_LOCK_KERNEL_WAITERS_H
#define SEMLOCK_LOCK_KERNEL_WAITERS_H

#include <stdbool.h>

struct lock;

/* Does anybody sleep in the kernel in front of the open LOCK, or of a slot of it?  Whoever is
 * stopped does not.  False also where /proc/locks does not tell. */
bool asleep_for(const struct lock *lock);

#endif
