/* SPDX-License-Identifier: MIT */
/* lock/attempt.h - one attempt at an open lock.  Order is the caller's business. */
#ifndef SEMLOCK_LOCK_ATTEMPT_H
#define SEMLOCK_LOCK_ATTEMPT_H

#include "lock/lock.h"
#include "lock/queue.h"

/* Take LOCK, and a slot of it if it has slots, without sleeping. */
enum outcome attempt_try(struct lock *lock, struct error *error);

/* The same for a caller that does not wait.  Another process can hold slots for a moment (-n
 * --take), and release them again: so try several times before BUSY. */
enum outcome attempt_once(struct lock *lock, struct error *error);

/* Sleep in the lock call until LOCK is taken; BUSY when DEADLINE has passed.  The caller must call
 * wakeup_off() at the end. */
enum outcome attempt_sleep(struct lock *lock, const struct deadline *deadline, struct error *error);

/* Unlock LOCK, and keep it open. */
void attempt_drop(struct lock *lock);

/* When a lock counts as deserted: it is found free COUNT times over SPELL ns, and then no process
 * sleeps in front of it in the kernel.  Only the list of all locks (/proc/locks) shows such a
 * process, and reading it may take more than LIST_TIME ns of processor time.  Then the lock counts
 * as deserted only if the caller has no time to look again, as with -n. */
struct checks {
	int count;
	int64_t spell;
	int64_t list_time;
	bool looks_again;
};

/* Take LOCK if it is deserted.  The CHECKS are irregularly spaced, so that a lock handed on among
 * living waiters is soon found busy.  BUSY: it is not deserted.  *SLEEPER: the lock is free for us,
 * but a process that wants more of it sleeps in front of it; finding that out cost a read of the
 * list of all locks.  QUEUE: that of our ticket (our turn may come before the checks are over), or
 * NULL if we are not in line. */
enum outcome attempt_deserted(struct lock *lock, const struct checks *checks, struct queue *queue,
    bool *sleeper, struct error *error);

/* A random number of ns from 0 to MOST - 1. */
int64_t attempt_jitter(int64_t most);

#endif
