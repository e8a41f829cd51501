/* lock/held_mode.h - what the kernel says of a descriptor of ours: which lock it carries. */
#ifndef SEMLOCK_LOCK_HELD_MODE_H
#define SEMLOCK_LOCK_HELD_MODE_H

#include <stdbool.h>

struct lock;

enum fdinfo_mode { FDINFO_NONE, FDINFO_SHARED, FDINFO_EXCLUSIVE };

/* The lock of LOCK's kind that LOCK->fd carries.  FDINFO_NONE also where there is no
 * /proc to ask. */
enum fdinfo_mode fdinfo_held(const struct lock *lock);

/* Does LOCK->fd carry a lock of another kind as well, or of other bytes than LOCK's? */
bool fdinfo_carries_more(const struct lock *lock);

/* The slot of LOCK's kind that LOCK->fd carries, from 0; -1: none of as many as LOCK has. */
int fdinfo_slot(const struct lock *lock);

#endif
