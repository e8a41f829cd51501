/* lock/lockfile.h - opening and removing the file that a kernel lock is taken on,
 * among people who may wish us ill. */
#ifndef SEMLOCK_LOCK_LOCKFILE_H
#define SEMLOCK_LOCK_LOCKFILE_H

#include <stdbool.h>

#include "lock/lock.h"
#include "report/error.h"

/* Open LOCK->name as LOCK->access says, making the file if there is none, and set
 * LOCK->fd: never 0 to 2, closed at exec unless the command is to inherit it, and nothing
 * truncated, followed or hung on that should not be.  Returns 0, or -1 with ERROR filled. */
int lockfile_open(struct lock *lock, struct error *error);

/* Note what LOCK->fd is: the lock's identity, and whose it is.  Returns 0, or -1 with errno set. */
int lockfile_identify(struct lock *lock);

/* Does the name still mean the file that LOCK->fd is?  Asked when the lock has been
 * taken: if so, whoever opens the name meets our lock.  For a descriptor of the
 * caller's: is its file still there at all? */
bool lockfile_current(const struct lock *lock);

/* Remove the file of a lock that we have already let go, unless somebody holds it, or the
 * name means another file by now; not being able to is no error.  A file that is not empty is
 * somebody's data, and left: then the result is false. */
bool lockfile_remove(struct lock *lock);

#endif
