/* SPDX-License-Identifier: MIT */
/* lock/attempt.h - one attempt at an open lock.  Order is the caller's business. */
#ifndef SEMLOCK_LOCK_ATTEMPT_H
#define SEMLOCK_LOCK_ATTEMPT_H

#include "lock/lock.h"
#include "lock/queue.h"

/* Take LOCK, and a slot of it if it has slots, without sleeping. */
enum outcome attempt_try(struct lock *lock, struct error *error);

/* The same for a caller that does not wait.  Slots that another process only tries (-n --take) and
 * releases again are tried again, so that BUSY means held. */
enum outcome attempt_once(struct lock *lock, struct error *error);

/* Sleep in the lock call until LOCK is taken; BUSY when DEADLINE has passed.  The caller must call
 * wakeup_off() at the end. */
enum outcome attempt_sleep(struct lock *lock, const struct deadline *deadline, struct error *error);

/* Unlock LOCK, and keep it open. */
void attempt_drop(struct lock *lock);

/* When a lock counts as deserted: it is found free COUNT times over SPELL ns, and then no process
 * sleeps in front of it in the kernel.  The list of all locks, which says that, may be too long for
 * LIST_TIME ns of processor time.  Then the lock counts as deserted if the caller has no time to
 * look again, as with -n, and otherwise not. */
struct checks {
	int count;
	int64_t spell;
	int64_t list_time;
	bool looks_again;
};

/* Take LOCK if it is deserted.  The CHECKS are irregularly spaced, so that a lock handed on among
 * living waiters is soon found busy.  BUSY: it is not deserted.  *SLEEPER: it is free for us, but a
 * process that wants more of it sleeps in front of it; finding that out cost a read of the list of
 * all locks.  QUEUE is that of our ticket, whose turn may come before the checks are over, or NULL
 * for a caller that is not in line. */
enum outcome attempt_deserted(struct lock *lock, const struct checks *checks, struct queue *queue,
    bool *sleeper, struct error *error);

/* A random number of ns from 0 to MOST - 1. */
int64_t attempt_jitter(int64_t most);

#endif
