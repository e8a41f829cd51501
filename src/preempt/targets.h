/* SPDX-License-Identifier: MIT */
/* preempt/targets.h - the processes that --replace and --toggle may signal: which, and how.
 *
 * A target is known by a pidfd, a descriptor of that very process.  Once it has ended, a signal reaches no
 * process, even if its PID is another process's by then. */
#ifndef SEMLOCK_PREEMPT_TARGETS_H
#define SEMLOCK_PREEMPT_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "owners/owners.h"
#include "sys/deadline.h"

struct target {
	pid_t pid;
	int pidfd;
	bool signalled;
	struct deadline kill; /* once SIGNALLED: the time of SIGKILL */
};

struct targets {
	struct target *list;
	size_t count;
};

/* The living target PID, or NULL. */
struct target *targets_find(const struct targets *targets, pid_t pid);

/* Is a target alive that has been signalled? */
bool targets_obeying(const struct targets *targets);

/* Add PID to TARGETS.  Returns 0, also when there is no such process; -1 with errno set. */
int targets_add(struct targets *targets, pid_t pid);

/* Send SIGNO to TARGET.  Returns 0, also when it has ended; -1 with errno set. */
int targets_signal(const struct target *target, int signo);

/* Sleep until one of TARGETS ends or its SIGKILL is due, at most MOST milliseconds. */
void targets_wait(struct targets *targets, int64_t most);

/* Close and free all of TARGETS. */
void targets_forget(struct targets *targets);

/* Does flock(1) wait for HOLDER?  It passes no signal on, and its command runs on without it. */
bool targets_of_flock(const struct owner *holder);

/* The process to send SIGNO to, so that HOLDER releases the lock.  semlock passes a signal on to its command
 * and then releases the lock; flock(1) does not, so there it is the command.  SIGKILL cannot be passed on: the
 * command gets it, and semlock ends with it; a command without the lock is tied to its semlock.  A process
 * that still holds it is found by the next search. */
pid_t targets_choose(const struct owner *holder, int signo);

/* What is missing for a proof that PID, of HOLDER's kernel lock on LOCK, may be signalled: half a sentence behind
 * "process PID (its command)".  NULL: nothing is, or PID has ended.  An open descriptor proves nothing: it can be
 * passed to a process that receives descriptors from anybody.  What the kernel names as the lock's taker is the
 * holder, if it has the lock still, and so is the command that it runs, if it is a semlock or a flock(1).  The kernel
 * names no taker of an OFD lock: there a semlock or flock(1) that has it is the holder.  Where the taker has ended,
 * only a process of the caller's own user counts; for root, whose daemons listen to everybody, only on a lock that no
 * other user can open. */
const char *targets_unproven(const struct owner *holder, pid_t pid, const struct lock *lock);

/* May HOLDER, among those FOUND, still give LOCK back?  A waiter that takes the lock looks for an earlier ticket
 * while it has its own, and releases the lock if there is one; then it gives up its ticket and starts its
 * command.  So a holder with a ticket only waits, and must not be signalled.  Returns true, too, if a ticket
 * cannot be seen and other processes wait.
 * To be asked after FOUND was filled, and before owners_verify(): then a holder without a ticket has started
 * its command. */
bool targets_may_yield(const struct owners *found, const struct owner *holder, const struct lock *lock);

#endif
