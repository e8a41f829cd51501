/* SPDX-License-Identifier: MIT */
/* methods/kernel/lockfile.h - the file that a kernel lock is taken on: opened and removed where
 * other users may be hostile. */
#ifndef SEMLOCK_METHODS_KERNEL_LOCKFILE_H
#define SEMLOCK_METHODS_KERNEL_LOCKFILE_H

#include <stdbool.h>

#include "lock/lock.h"

/* Note the identity, owner and permissions of LOCK->fd in LOCK.  Returns 0, or -1 with errno
 * set. */
int lockfile_identify(struct lock *lock);

/* Does LOCK's name still mean the file that is open as LOCK->fd?  If so, and if we hold the lock,
 * every process that opens the name meets our lock.  A caller's descriptor has no name in LOCK:
 * does its file still have any name, or need none (spec->may_be_deleted)? */
bool lockfile_current(const struct lock *lock);

/* Remove the file of LOCK, which we have unlocked already.  Leave it if another process holds the
 * lock, or if the name means another file by now; that is no error.  Returns false if the file is
 * not empty: it is somebody's data, and stays. */
bool lockfile_remove(struct lock *lock);

/* Is LOCK->fd on a network file system?  There, flock(2) of a file is a record lock on the server,
 * and flock(2) of a directory excludes only processes of this machine. */
bool lockfile_on_network(const struct lock *lock);

/* Is LOCK, which is open, on a FUSE file system that may keep locks to itself?  If so, processes
 * that use another mount may not see the lock.  Writes the type of the mount into TYPE (SIZE
 * bytes). */
bool lockfile_may_be_hidden(const struct lock *lock, char *type, size_t size);

/* A method's open, idle and release. */
int kernel_open(struct lock *lock, struct error *error);
enum outcome kernel_idle(struct lock *lock, struct error *error);
void kernel_release(struct lock *lock);

/* Is LOCK, which was taken, still ours?  A kernel lock can be lost only on NFS.  Elsewhere this
 * returns true. */
bool kernel_lock_owned(struct lock *lock);

#endif
