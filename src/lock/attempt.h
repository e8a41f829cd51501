/* SPDX-License-Identifier: MIT */
/* lock/attempt.h - one attempt at an open lock: it keeps no order, which is the caller's to do. */
#ifndef SEMLOCK_LOCK_ATTEMPT_H
#define SEMLOCK_LOCK_ATTEMPT_H

#include "lock/lock.h"
#include "lock/queue.h"

/* Take LOCK, and a slot of it if it has slots, without sleeping. */
enum outcome attempt_try(struct lock *lock, struct error *error);

/* The same, for a caller that does not wait.  Slots that another process only tries (-n --take),
 * and gives back, are looked at again: BUSY says that they are held. */
enum outcome attempt_once(struct lock *lock, struct error *error);

/* Sleep in the lock call until LOCK is taken; BUSY when DEADLINE has passed.  The caller ends with
 * wakeup_off(). */
enum outcome attempt_sleep(struct lock *lock, const struct deadline *deadline, struct error *error);

/* Unlock LOCK, and keep it open. */
void attempt_drop(struct lock *lock);

/* When a lock counts as deserted: found free COUNT times over SPELL ns, after which no process
 * sleeps in front of it in the kernel.  The list of all locks, which tells that, may be so long
 * that LIST_TIME ns of processor time are not enough: then it is deserted all the same if the
 * caller has no time to look again, as with -n, and else it is not. */
struct checks {
	int count;
	int64_t spell;
	int64_t list_time;
	bool looks_again;
};

/* What a lock that is not deserted lives by. */
enum life {
	LIFE_HOLDER,  /* it is held */
	LIFE_RACE,    /* it was taken late in the checks: most likely by one that checks as well */
	LIFE_SLEEPER, /* it is free for us, and a process that wants more of it sleeps before it */
};

/* Take LOCK if it is deserted.  The CHECKS are irregularly spaced, so that a lock handed on among
 * living waiters is soon found busy.  BUSY: it is not, by *LIFE.  QUEUE is that of our ticket,
 * whose turn it may be before they are over, or NULL for a caller that does not stand in line. */
enum outcome attempt_deserted(struct lock *lock, const struct checks *checks, struct queue *queue,
    enum life *life, struct error *error);

/* A number of ns from 0 to MOST - 1, a different one for each call and process. */
int64_t attempt_jitter(int64_t most);

#endif
