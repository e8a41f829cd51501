/* lock/queuefile.h - where a lock's queue is, and whether it is to be trusted. */
#ifndef SEMLOCK_LOCK_QUEUEFILE_H
#define SEMLOCK_LOCK_QUEUEFILE_H

struct lock;

enum { QUEUE_PATH_SIZE = 96 };

/* Where LOCK's queue file is if there is one: a write lock on its byte N is ticket N, and
 * that is twice the time (ns, CLOCK_MONOTONIC) at which the waiter came, and QUEUE_ORDINARY more
 * unless it replaces the holder. */
void queuefile_path(const struct lock *lock, char path[QUEUE_PATH_SIZE]);

/* Open LOCK's queue file, above standard error and never inherited.  Returns -1 with errno set
 * when that cannot be done: ENOENT when there is none. */
int queuefile_open(const struct lock *lock);

/* The same; if there is none it is made, as open as LOCK is: its mode is what LOCK's mode and those
 * of all directories above allow. */
int queuefile_open_or_create(const struct lock *lock);

enum trust {
	TRUSTED,
	REMOVED, /* trusted, but newcomers do not find it any more */
	NOT_TRUSTED
};

/* What is to be thought of FD, which is open on LOCK's queue file: no wider than LOCK, and made by
 * root, LOCK's owner, ourselves, or, where LOCK is open to others, one of those. */
enum trust queuefile_look(int fd, const struct lock *lock);

/* Remove its name.  Returns 0, or -1 with errno set. */
int queuefile_remove(const struct lock *lock);

#endif
