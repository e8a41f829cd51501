/* SPDX-License-Identifier: MIT */
/* lock/lockset.h - several locks at once (-f), in an order that cannot deadlock.
 *
 * Processes that all take their locks in one order cannot deadlock.  The order is by the files'
 * devices and inodes, not that of the command line: while we wait for a lock, we hold only locks
 * that come before it.  A file with two names is one lock, in the stronger mode: the lock that asks
 * for that mode covers the other (place.covered). */
#ifndef SEMLOCK_LOCK_LOCKSET_H
#define SEMLOCK_LOCK_LOCKSET_H

#include "lock/lock.h"

/* Fill ORDER with the COUNT open LOCKS, in the order in which to take them, and set their
 * place.covered. */
void lockset_sort(struct lock *locks, unsigned count, struct lock **order);

/* For each lock in ORDER, create what the command inherits.  This comes before all takes, because
 * the first take that needs a record starts the command.  Returns the lock that failed, with ERROR
 * filled; or NULL. */
struct lock *lockset_prepare(struct lock *const *order, unsigned count, struct error *error);

/* Is LOCK, which was taken, still ours, and does its name still mean it?  While we waited for
 * another lock, a program that simply deletes lock files may have replaced this one; or, if LOCK
 * cannot be flocked, it may have become stale, and been taken over. */
bool lockset_still_ours(struct lock *lock);

/* Returns the one of the COUNT taken LOCKS through which the first is held: the first itself, or
 * the one that covers it, by another name of its file. */
const struct lock *lockset_covering(const struct lock *locks, unsigned count);

/* Would closing FD drop one of the COUNT LOCKS, which this process holds?  Closing any descriptor
 * of a file, by exec too, drops the process's own (POSIX) locks on it. */
bool posix_lock_is_on(int fd, const struct lock *locks, unsigned count);

/* Call release() of the COUNT LOCKS.  Each may be only half filled in. */
void lockset_release(struct lock *locks, unsigned count);

#endif
