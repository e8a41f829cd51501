/* SPDX-License-Identifier: MIT */
/* preempt/targets.h - the processes that --replace and --toggle may signal: which, and how. */
#ifndef SEMLOCK_PREEMPT_TARGETS_H
#define SEMLOCK_PREEMPT_TARGETS_H

#include "owners/owners.h"

/* Does flock(1) wait for HOLDER?  It passes no signal on, and its command runs on without it. */
bool targets_of_flock(const struct owner *holder);

/* The process to send SIGNO to, so that HOLDER releases the lock.  semlock passes a signal on to
 * its command and then releases the lock; flock(1) does not, so there it is the command.  SIGKILL
 * cannot be passed on: the command gets it, and semlock ends with it; a command without the lock is
 * tied to its semlock.  Whoever still holds it is found by the next search. */
pid_t targets_choose(const struct owner *holder, int signo);

/* What is missing for a proof that PID, of HOLDER's kernel lock on LOCK, may be signalled: half a
 * sentence behind "process PID (its command)".  NULL: nothing is, or PID has ended.  An open
 * descriptor proves nothing: it can be passed to a process that receives descriptors from anybody.
 * What the kernel names as the lock's taker is the holder, if it has the lock still, and so is the
 * command that it runs, if it is a semlock or a flock(1).  The kernel names no taker of an OFD
 * lock: there a semlock or flock(1) that has it is the holder.  Where the taker has ended, only a
 * process of the caller's own user counts; for root, whose daemons listen to everybody, only on a
 * lock that no other user can open. */
const char *targets_unproven(const struct owner *holder, pid_t pid, const struct lock *lock);

/* Has the living taker of HOLDER's kernel lock started PID, as itself, or as a user that the caller
 * is; or is PID the taker?  Such a process has the lock as a part of the job, and is proven to
 * after the taker's end, too: a job that has been signalled leaves it behind. */
bool targets_is_of_job(const struct owner *holder, pid_t pid);

/* May HOLDER, among those FOUND, still give LOCK back?  A waiter that takes the lock looks for an
 * earlier ticket while it has its own, and releases the lock if there is one; then it gives up its
 * ticket and starts its command.  So a holder with a ticket only waits, and must not be signalled.
 * Returns true, too, if a ticket cannot be seen and other processes wait.  To be asked after FOUND
 * was filled, and before owners_verify(): then a holder without a ticket has started its
 * command. */
bool targets_may_yield(const struct owners *found, const struct owner *holder,
    const struct lock *lock);

#endif
