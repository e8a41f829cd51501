/* SPDX-License-Identifier: MIT */
/* lock/queue_trust.h - the file that tickets are drawn from: shared memory named after the lock,
 * and open to the same users as the lock.
 *
 * Any local user can make a file of that name first.  Such a file is used only if each user that
 * can open it can also open the lock, and if a user of the lock made it.  Otherwise it is removed,
 * where that is permitted. */
#ifndef SEMLOCK_LOCK_QUEUE_TRUST_H
#define SEMLOCK_LOCK_QUEUE_TRUST_H

#include <stdbool.h>
#include <sys/types.h>

#include "lock/lock.h"

enum { QUEUE_PATH_SIZE = 96 };

/* Who can open a lock, and so its queue: all users (0666), GROUP (0660), or only the lock's owner
 * (0600).  Zero until it is looked up, once. */
struct openness {
	bool known;
	mode_t mode;
	gid_t group;
};

enum trust {
	TRUSTED,
	REMOVED, /* trusted, but it has no name any more: newcomers do not find it */
	NOT_TRUSTED
};

/* Put the path of LOCK's queue file into PATH, whether or not the file exists.  Ticket N is a write
 * lock on byte N of this file.  N is twice the time (ns, CLOCK_MONOTONIC) at which the waiter came,
 * plus QUEUE_ORDINARY unless the waiter goes to the front (--first, --replace). */
void queuefile_path(const struct lock *lock, char path[QUEUE_PATH_SIZE]);

/* Open LOCK's queue file.  Returns a descriptor, or -1 with errno set; ENOENT: it does not
 * exist. */
int queuefile_open(const struct lock *lock);

/* Open LOCK's queue file, or create one that the users of LOCK can open; then OPENNESS is filled.
 * Returns a descriptor, or -1 with errno set. */
int queuefile_open_or_create(const struct lock *lock, struct openness *openness);

/* May FD, open as LOCK's queue file, be used? */
enum trust queuefile_check(int fd, const struct lock *lock, struct openness *openness);

/* Remove the name of LOCK's queue file.  Returns 0, or -1 with errno set. */
int queuefile_remove(const struct lock *lock);

/* Remove whatever has the name of LOCK's queue file, even a link or a directory.  Returns 0, or -1
 * with errno set: most likely, another user put it there. */
int queuefile_clear(const struct lock *lock);

#endif
