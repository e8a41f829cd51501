/* lock/queuefile.h - the file of a lock's queue: its name, its mode, and whether to trust it. */
#ifndef SEMLOCK_LOCK_QUEUEFILE_H
#define SEMLOCK_LOCK_QUEUEFILE_H

#include "lock/lock.h"

enum { QUEUE_PATH_SIZE = 96 };

/* Put the path of LOCK's queue file into PATH, whether the file exists or not.  A write lock on its byte
 * N is ticket N: twice the time (ns, CLOCK_MONOTONIC) at which the waiter came, and QUEUE_ORDINARY more
 * unless it replaces the holder. */
void queuefile_path(const struct lock *lock, char path[QUEUE_PATH_SIZE]);

/* Open LOCK's queue file, above standard error and never inherited.  Returns the descriptor, or -1 with
 * errno set: ENOENT if there is none. */
int queuefile_open(const struct lock *lock);

/* The same; if there is none, make it, for the users that can open LOCK: by LOCK's mode, and those of all
 * directories above. */
int queuefile_open_or_create(const struct lock *lock);

enum trust {
	TRUSTED,
	REMOVED, /* trusted, but without a name: newcomers do not find it */
	NOT_TRUSTED
};

/* Can FD, open on LOCK's queue file, be trusted?  It must not be open to users that cannot open LOCK, and
 * be made by one of those that can. */
enum trust queuefile_check(int fd, const struct lock *lock);

/* Remove its name.  Returns 0, or -1 with errno set. */
int queuefile_remove(const struct lock *lock);

#endif
