/* SPDX-License-Identifier: MIT */
/* lock/attempt.h - one attempt at an open lock.  The caller keeps the order of the waiters. */
#ifndef SEMLOCK_LOCK_ATTEMPT_H
#define SEMLOCK_LOCK_ATTEMPT_H

#include "lock/lock.h"
#include "lock/queue.h"

/* Take LOCK, and a slot of it if it has slots, without sleeping. */
enum outcome attempt_try(struct lock *lock, struct error *error);

/* The same for a caller that does not wait.  Another process that does not wait (-n --take) may
 * hold slots for a moment, and release them again: so, with slots, try several times before
 * BUSY. */
enum outcome attempt_once(struct lock *lock, struct error *error);

/* Sleep until LOCK is taken; BUSY at DEADLINE (--take: after half a second).  The caller must call
 * wakeup_off() at the end. */
enum outcome attempt_sleep(struct lock *lock, const struct deadline *deadline, struct error *error);

/* Unlock LOCK, and keep it open. */
void attempt_drop(struct lock *lock);

/* When a lock counts as deserted: if it is found free COUNT times over SPELL ns, and no process
 * sleeps in the kernel in front of it.  Only the list of all locks (/proc/locks) shows such a
 * process.  The list is read for LIST_TIME ns of processor time at most.  If that is not enough for
 * the whole list, the lock counts as deserted only for a caller that has no time to look again, as
 * with -n (LOOKS_AGAIN is false). */
struct checks {
	int count;
	int64_t spell;
	int64_t list_time;
	bool looks_again;
};

/* Take LOCK if it is deserted.  The CHECKS come at irregular intervals, so that a lock that living
 * waiters hand on is soon found busy.  Returns BUSY if LOCK is not deserted.  *SLEEPER is set if
 * LOCK is free for us, but a process that wants more of it sleeps in front of it; to find that, the
 * list of all locks was read.  QUEUE is the queue of our ticket, because our turn may come before
 * the checks are over; NULL if we are not in line. */
enum outcome attempt_deserted(struct lock *lock, const struct checks *checks, struct queue *queue,
    bool *sleeper, struct error *error);

/* A random number of ns from 0 to MOST - 1. */
int64_t attempt_jitter(int64_t most);

#endif
