/* SPDX-License-Identifier: MIT */
/* lock/take.h - taking a lock and giving it back: the policy over any method.
 *
 *              BUSY, time left: queue, sleep
 *               .--------------.
 *               v              |
 *   FREE --> open --> take ----+--> TAKEN --> still what the name means? --> held
 *              ^        |                                |
 *              |        '--> BUSY (-n, time out), FAILED | no: the file was removed
 *              |                                         | or replaced
 *
 * '-----------------------------------------' */
#ifndef SEMLOCK_LOCK_TAKE_H
#define SEMLOCK_LOCK_TAKE_H

#include "lock/lock.h"

/* Open LOCK->name, or check the caller's LOCK->fd, and note its identity.  Nothing is taken.  A
 * lease on the file (Samba) is waited for within WAIT.  TAKEN: it is open. */
enum outcome lock_open_in_time(struct lock *lock, const struct wait_options *wait,
    struct error *error);

/* Open and take LOCK; do both again whenever the name means another file by then.  BUSY: not within
 * WAIT.  Unless TAKEN, nothing is held and nothing of ours is open. */
enum outcome lock_take(struct lock *lock, const struct wait_options *wait, struct error *error);

/* Take the open LOCK.  AGAIN: taken or not, it has to be closed and opened anew. */
enum outcome lock_take_open(struct lock *lock, const struct wait_options *wait,
    struct error *error);

/* The acquire of every method that is not on a server: open LOCK, and lock_take_open(). */
enum outcome lock_take_in_turn(struct lock *lock, const struct wait_options *wait,
    struct error *error);

/* ---- more than one lock at once (-f): all or none, and without deadlock ---- */

/* Take the COUNT locks at LOCKS, sorted for it into another order, under one WAIT.  On BUSY or
 * FAILED none is held, and *CULPRIT is the lock at which it failed. */
enum outcome lockset_take(struct lock *locks, unsigned count, const struct wait_options *wait,
    const struct lock **culprit, struct error *error);

void lockset_release(struct lock *locks, unsigned count);

#endif
