/* lock/held_mode.h - which locks a descriptor of ours carries already, from /proc/self/fdinfo.
 * Without /proc: none. */
#ifndef SEMLOCK_LOCK_HELD_MODE_H
#define SEMLOCK_LOCK_HELD_MODE_H

#include "lock/lock.h"

enum held_mode { HELD_NONE, HELD_SHARED, HELD_EXCLUSIVE };

/* The lock of LOCK's kind that LOCK->fd carries.  An exclusive one of a part of LOCK's range counts
 * as shared. */
enum held_mode held_mode(const struct lock *lock);

/* Does LOCK->fd carry a lock of another kind as well, or of other bytes than LOCK's? */
bool held_more(const struct lock *lock);

/* The slot of LOCK that LOCK->fd carries, from 0; -1: none. */
int held_slot(const struct lock *lock);

#endif
