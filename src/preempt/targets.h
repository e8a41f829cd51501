/* SPDX-License-Identifier: MIT */
/* preempt/targets.h - the processes that --replace and --toggle may signal: which, and how. */
#ifndef SEMLOCK_PREEMPT_TARGETS_H
#define SEMLOCK_PREEMPT_TARGETS_H

#include "owners/owners.h"

/* Does a flock(1) wait for HOLDER, its command?  flock(1) passes no signal on, and if it ends, its
 * command runs on. */
bool targets_of_flock(const struct owner *holder);

/* The process to send SIGNO to, so that HOLDER releases the lock.  semlock passes a signal on to
 * its command and then releases the lock; flock(1) does not, so there the command is
 * signalled.  SIGKILL cannot be passed on: the command gets it, and semlock ends with it; a command
 * that does not hold the lock itself dies with its semlock.  The next search finds the processes
 * that still hold the lock. */
pid_t targets_choose(const struct owner *holder, int signo);

/* Why nothing proves that PID, a process of HOLDER, may be signalled for its kernel lock LOCK: the
 * rest of a sentence after "process PID (its command)".  NULL: there is proof, or PID has ended.
 * An open descriptor proves nothing: it can be passed to a process that receives descriptors from
 * anybody.  The process that the kernel names as the lock's taker is the holder while it still
 * holds the lock; so is the taker's command, if the taker is a semlock or flock(1).  The kernel
 * names no taker of an OFD lock: there, a semlock or flock(1) that holds it is the holder.  If the
 * taker has ended, only a process of the caller's own user counts; for root, whose daemons accept
 * descriptors from everybody, only on a lock that no other user can open. */
const char *targets_unproven(const struct owner *holder, pid_t pid, const struct lock *lock);

/* Is PID the living taker of HOLDER's kernel lock, or a descendant of it, where the taker runs as
 * the caller's or as PID's user?  Such a process holds the lock as a part of the job.  The proof
 * stays valid after the taker's end, because a job that was signalled can leave the process
 * behind. */
bool targets_is_of_job(const struct owner *holder, pid_t pid);

/* May HOLDER, among those FOUND, still give LOCK back?  A waiter that has taken the lock looks for
 * an earlier ticket while it holds its own, and releases the lock if it finds one; else it gives up
 * its ticket and starts its command.  So a holder with a ticket only waits, and must not be
 * signalled.  Returns true, too, if the queue cannot be read, or if HOLDER's process cannot be seen
 * and other processes wait.  Call this after FOUND was filled and before owners_verify(): then a
 * holder without a ticket has started its command. */
bool targets_may_yield(const struct owners *found, const struct owner *holder,
    const struct lock *lock);

#endif
