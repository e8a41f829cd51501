/* owners/nesting.h - a command that runs under a lock asks for the same lock again.
 *
 * SEMLOCK_HELD, which the command has inherited, says where to look.  Whether an ancestor holds the lock now
 * is seen in /proc; in the record of a lock made of files; in the pipe and the arguments of the helper of a
 * lock on a server. */
#ifndef SEMLOCK_OWNERS_NESTING_H
#define SEMLOCK_OWNERS_NESTING_H

#include "lock/lock.h"

enum nesting {
	NESTING_NONE,   /* no ancestor holds the lock, or the request is for its very descriptor */
	NESTING_SHARES, /* an ancestor's lock and the requested one do not conflict: both shared, other
			 * bytes of the file, another slot, or another kind of lock */
	NESTING_QUEUES, /* the same, but a waiter may stand between the two in the queue */
	NESTING_COVERS, /* an ancestor holds the lock in a mode that covers the requested one */
	NESTING_LESS    /* an ancestor holds less than is requested: shared or a slot, not exclusive; or
			 * some of the bytes */
};

/* Search this process's ancestors for a holder of LOCK, which is not open yet unless it is a caller's
 * descriptor.  Unless NESTING_NONE, *HOLDER is the first of them. */
enum nesting nesting_look(const struct lock *lock, pid_t *holder);

/* The open LOCK is busy: does this process hold it through another descriptor, which it has inherited?  Then
 * the wait would never end.  Unless NESTING_NONE, *FD is that descriptor. */
enum nesting nesting_inherited(const struct lock *lock, int *fd);

#endif
