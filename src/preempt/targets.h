/* SPDX-License-Identifier: MIT */
/* preempt/targets.h - the processes that --replace and --toggle may signal: which, and how. */
#ifndef SEMLOCK_PREEMPT_TARGETS_H
#define SEMLOCK_PREEMPT_TARGETS_H

#include "owners/owners.h"

/* Is HOLDER the command of a flock(1), which waits for it?  A flock(1) passes no signal on, and
 * when it ends, its command runs on. */
bool targets_of_flock(const struct owner *holder);

/* Returns the process to send SIGNO to, so that HOLDER releases the lock.
 *
 * If a semlock runs the command, that is the semlock: it passes the signal on to its command, and
 * then releases the lock.  If a flock(1) does, it is the command, because flock(1) passes no signal
 * on.
 *
 * A semlock cannot pass SIGKILL on: so its command gets SIGKILL, and the semlock ends with it.  If
 * the command does not hold the lock itself, the semlock gets SIGKILL, and the command dies with
 * it.  The next search finds the processes that still hold the lock. */
pid_t targets_choose(const struct owner *holder, int signo);

/* May PID, a process of HOLDER, be signalled for its kernel lock LOCK?  Returns NULL if that is
 * proven, or if PID has ended; else why not, as the rest of a sentence after "process PID (its
 * command)".
 *
 * An open descriptor proves nothing: it can be passed to a process that receives descriptors from
 * anybody.  The kernel names the process that took a lock, its taker.  It is proof if PID is the
 * taker, and still holds the lock, or if PID is the command of that taker, a semlock or flock(1).
 * The kernel names no taker of an OFD lock: there, a semlock or flock(1) that holds the lock counts
 * as its taker.
 *
 * Any other process of HOLDER must belong to the caller's own user.  If that is root, whose daemons
 * accept descriptors from everybody, LOCK must also be one that no other user can open. */
const char *targets_unproven(const struct owner *holder, pid_t pid, const struct lock *lock);

/* Is PID the living taker of HOLDER's kernel lock, or a descendant of that taker?  A descendant
 * counts only if the taker runs as the caller's user, or as PID's.  Such a process holds the lock
 * as a part of the job.  The answer stays valid after the taker's end, because a job that was
 * signalled can leave PID behind. */
bool targets_is_of_job(const struct owner *holder, pid_t pid);

/* May HOLDER, among those FOUND, still give LOCK back?  A waiter that has taken the lock still has
 * its ticket while it looks for an earlier one.  If it finds one, it releases the lock; else it
 * gives up its ticket and starts its command.  So a holder with a ticket only waits, and must not
 * be signalled.  Returns true, too, if the queue cannot be read, or if HOLDER's process cannot be
 * seen and other processes wait.  Call this after FOUND was filled and before owners_verify(): then
 * a holder without a ticket has started its command. */
bool targets_may_yield(const struct owners *found, const struct owner *holder,
    const struct lock *lock);

#endif
