/* run/nesting.h - a command that runs under a lock asks for the same lock once more.
 *
 * SEMLOCK_HELD, which it has inherited, only says where to look; whether an ancestor really
 * holds the lock now is seen in /proc, and in the record of a lock made of files, or in the pipe
 * and the arguments of the helper that holds one on a server. */
#ifndef SEMLOCK_RUN_NESTING_H
#define SEMLOCK_RUN_NESTING_H

#include "lock/lock.h"
#include "owners/owners.h"

enum nesting {
	NESTING_NONE,   /* no ancestor holds it, or it is its very descriptor that is asked for */
	NESTING_SHARES, /* one holds it shared, and we want it shared; or it holds other bytes of the
			 * file, another slot, or a lock of another kind: there is room for both */
	NESTING_QUEUES, /* the same, but whoever waits already would stand between the two */
	NESTING_COVERS, /* one holds it, in a mode that covers what we want */
	NESTING_LESS    /* one holds it in a mode that does not cover what we want: shared or as a
			 * slot, and we want it exclusively; or some of the bytes that we want */
};

/* What is LOCK, which is not open yet unless it is a caller's descriptor, to our ancestors?
 * Unless NESTING_NONE, *HOLDER is the first of them that holds it. */
enum nesting nesting_look(const struct lock *lock, pid_t *holder);

/* LOCK, which was opened, has turned out to be busy: does this very process hold it, through
 * another descriptor that it has inherited?  Then the wait would never end.  Unless NESTING_NONE,
 * *FD is that descriptor. */
enum nesting nesting_inherited(const struct lock *lock, int *fd);

#endif
