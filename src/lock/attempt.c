#include <config.h>

#include <time.h>

#include "sys/wakeup.h"
#include "lock/kernel_waiters.h"
#include "lock/attempt.h"
#include "sys/crash_points.h"
#include "lock/slots.h"

/* Is the lock itself to be taken?  Not where a slot is a part of it (a byte of its
 * range); where a slot is something else, the lock is the gate at which slot holders
 * and plain holders meet. */
static bool takes_whole(const struct lock *lock)
{
	return lock->slots == 0 || (lock->method->can & CAN_RANGE) == 0;
}

/* Give back whatever has been taken, and stay open. */
void attempt_drop(struct lock *lock)
{
	struct error ignored;

	slots_drop(lock);
	if (takes_whole(lock)) /* what else a caller's descriptor has of the range is not ours */
		lock->method->drop(lock, &ignored);
}

enum outcome attempt_try(struct lock *lock, struct error *error)
{
	enum outcome outcome = takes_whole(lock) ? lock->method->take(lock, TRY, error) : TAKEN;

	if (outcome != TAKEN || lock->slots == 0)
		return outcome;
	outcome = slots_try(lock, error);
	if (outcome != TAKEN)
		attempt_drop(lock);
	return outcome;
}

/* Sleep in the lock call itself.  A timer only breaks the sleep off; what it meant is
 * for the clock to say, and when the time is up there is one last try.  (The queue's timer
 * must not go on here: each tick would cost the place among those who do not queue.) */
static enum outcome sleep_in_call(struct lock *lock, const struct deadline *deadline,
    struct error *error)
{
	enum outcome outcome;

	if (deadline->never)
		alarm_off();
	do {
		if (!deadline->never && alarm_set(deadline_left(deadline), error) != 0)
			return FAILED;
		outcome = lock->method->take(lock, SLEEP, error); /* K2 */
		if (outcome == BUSY && deadline_left(deadline) == 0)
			return lock->method->take(lock, TRY, error);
	} while (outcome == BUSY);
	return outcome;
}

enum outcome attempt_sleep(struct lock *lock, const struct deadline *deadline, struct error *error)
{
	enum outcome outcome = takes_whole(lock) ? sleep_in_call(lock, deadline, error) : TAKEN;

	if (outcome != TAKEN || lock->slots == 0)
		return outcome;
	outcome = slots_try(lock, error);
	if (outcome == BUSY)
		outcome = slots_sleep(lock, deadline, error);
	if (outcome != TAKEN)
		attempt_drop(lock);
	return outcome;
}

/* TAKEN: it could be had.  It is not kept. */
static enum outcome free_now(struct lock *lock, struct error *error)
{
	enum outcome outcome;

	if (lock->method->idle != NULL)
		return lock->method->idle(lock) ? TAKEN : BUSY;
	outcome = attempt_try(lock, error);
	if (outcome == TAKEN)
		attempt_drop(lock);
	return outcome;
}

/* Thousands of waiters that looked in step would hold each other up. */
int64_t attempt_jitter(int64_t most)
{
	static uint64_t state;

	state = (state + (uint64_t)clock_now()) * UINT64_C(6364136223846793005) + 1;
	return (int64_t)(state >> 33) % most;
}

/* A living head that wants more than we do is not the one that finds the lock free: a writer among
 * readers, or a process that wants the whole lock among those that want a slot.  It sleeps in the
 * kernel, where it is seen: but /proc/locks, which changes while it is read, can leave out a line. */
enum outcome attempt_deserted(struct lock *lock, const struct looks *looks, int *seen, struct error *error)
{
	int64_t most = looks->spell / looks->count;
	struct timespec pause = {0, 0};
	enum outcome outcome;

	for (*seen = 0; *seen < looks->count; ++*seen) {
		outcome = free_now(lock, error);
		if (outcome != TAKEN)
			return outcome;
		CRASH_POINT("attempt.free");
		if (*seen >= looks->count / 2 && *seen % 4 == 0 && asleep_for(lock))
			return BUSY;
		alarm_off(); /* a tick of the timer would end the pause */
		pause.tv_nsec = (long)(most / 2 + attempt_jitter(most));
		nanosleep(&pause, NULL);
	}
	outcome = attempt_try(lock, error);
	if (outcome == TAKEN && looks->hold > 0)
		nanosleep(&(struct timespec){0, (long)looks->hold}, NULL);
	if (outcome == TAKEN && asleep_for(lock)) {
		attempt_drop(lock);
		outcome = BUSY;
	}
	return outcome;
}
