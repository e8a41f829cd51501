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

/* Does the name still mean the file that LOCK->fd is?  If so, once the lock is held, every process
 * that opens the name meets our lock.  For a caller's descriptor: does its file still have a
 * name? */
bool lockfile_current(const struct lock *lock);

/* Remove the file of LOCK, which we have unlocked already, unless a process holds it, or the name
 * means another file by now; a failure is no error.  Returns false if the file is not empty: then
 * it is somebody's data, and stays. */
bool lockfile_remove(struct lock *lock);

/* Is LOCK->fd on a network file system?  There, flock(2) locks a file's bytes on the server, and a
 * directory only for this machine. */
bool lockfile_on_network(const struct lock *lock);

/* Can the open LOCK be invisible beyond its mount, because that is a FUSE file system that may not
 * pass locks on?  If so, TYPE (SIZE bytes) gets the mount's type. */
bool lockfile_may_be_hidden(const struct lock *lock, char *type, size_t size);

/* A method's open, idle and release. */
int kernel_open(struct lock *lock, struct error *error);
enum outcome kernel_idle(struct lock *lock, struct error *error);
void kernel_release(struct lock *lock);

/* Is LOCK, which was taken, still ours?  Only on NFS this asks the system. */
bool kernel_lock_owned(struct lock *lock);

#endif
