/* SPDX-License-Identifier: MIT */
/* methods/kernel/kernel_methods.h - flock(2), and fcntl(2) record locks in their two kinds: of the
 * open file description (ofd), and of the process (posix). */
#ifndef SEMLOCK_METHODS_KERNEL_KERNEL_METHODS_H
#define SEMLOCK_METHODS_KERNEL_KERNEL_METHODS_H

#include <stdbool.h>

#include "lock/lock.h"
#include "lock/lock.h"

extern const struct method method_flock;
extern const struct method method_ofd;
extern const struct method method_posix;

/* Of every method of kernel locks. */
#define KERNEL_METHOD_FUNCTIONS \
	.family = OF_KERNEL, .open = kernel_open, .idle = kernel_idle, \
	.current = lockfile_current, .owned = kernel_lock_owned, .release = kernel_release, \
	.remove = lockfile_remove, .take_slot = kernel_take_slot, .drop_slot = kernel_drop_slot

/* A method's take_slot and drop_slot: a record lock on a byte of the range, or beyond any program's
 * data. */
enum outcome kernel_take_slot(struct lock *lock, unsigned slot, enum wait wait,
    struct error *error);
void kernel_drop_slot(struct lock *lock, unsigned slot);

/* ---- the file that the lock is taken on: opened and removed where other users may be hostile
 * ---- */

/* Note the identity, owner and permissions of LOCK->fd in LOCK.  Returns 0, or -1 with errno
 * set. */
int lockfile_identify(struct lock *lock);

/* Does the name still mean the file that LOCK->fd is?  Once the lock is held: if so, every process
 * that opens the name meets our lock.  Of a caller's descriptor: does its file still have a
 * name? */
bool lockfile_current(const struct lock *lock);

/* Remove the file of LOCK, which we have unlocked already, unless a process holds it, or the name
 * means another file by now; a failure is no error.  Returns false if the file is not empty: then
 * it is somebody's data, and stays. */
bool lockfile_remove(struct lock *lock);

/* Is LOCK->fd on a file system where flock(2) of a file locks its bytes at a server, and flock(2)
 * of a directory excludes only this machine?  */
bool lockfile_on_network(const struct lock *lock);

/* A method's open, idle and release. */
int kernel_open(struct lock *lock, struct error *error);
enum outcome kernel_idle(struct lock *lock, struct error *error);
void kernel_release(struct lock *lock);

/* If LOCK was taken, is it still ours?  Only on NFS the system is asked. */
bool kernel_lock_owned(struct lock *lock);

#endif
