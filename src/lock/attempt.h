/* lock/attempt.h - one attempt at an open lock, whoever else waits for it. */
#ifndef SEMLOCK_LOCK_ATTEMPT_H
#define SEMLOCK_LOCK_ATTEMPT_H

#include <stdint.h>

#include "sys/deadline.h"
#include "lock/lock.h"

/* Take LOCK, and a slot of it if it has slots, without sleeping. */
enum outcome attempt_try(struct lock *lock, struct error *error);

/* Sleep in the lock call until LOCK is taken; BUSY when DEADLINE has passed. */
enum outcome attempt_sleep(struct lock *lock, const struct deadline *deadline, struct error *error);

/* Give LOCK back, and stay open. */
void attempt_drop(struct lock *lock);

/* How often a lock has to be found free, over how many ns, and for how many ns more, in which we have
 * it, no other process may come to sleep in front of it. */
struct looks {
	int count;
	int64_t spell, hold;
};

/* Take LOCK if it is deserted: found free at each of LOOKS, which are irregularly spaced.  A lock
 * that is handed on among living waiters is found busy sooner.  BUSY: not free after *SEEN looks. */
enum outcome attempt_deserted(struct lock *lock, const struct looks *looks, int *seen, struct error *error);

/* A number of ns below MOST, another one at each call, and in each process. */
int64_t attempt_jitter(int64_t most);

#endif
