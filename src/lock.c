#include <config.h>

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "alarm.h"
#include "asleep.h"
#include "crash.h"
#include "fdinfo.h"
#include "lock.h"
#include "lockfile.h"
#include "methods/namefile.h"
#include "queue.h"
#include "slots.h"

static int look_at_descriptor(struct lock *lock, struct why *why)
{
	if (lockfile_identify(lock) == 0)
		return 0;
	if (errno == EBADF) {
		why_say(why, TROUBLE_LOCKABLE,
		    "this descriptor is not open; a shell opens it with exec %d>>FILE, and ksh and mksh "
		    "hand it on with %d>&%d behind the command", lock->fd, lock->fd, lock->fd);
		why->errnum = EBADF;
		return -1;
	}
	return why_set(why, TROUBLE_LOCKABLE, "cannot look at this descriptor");
}

static int deleted(struct why *why)
{
	return why_say(why, TROUBLE_LOCKABLE,
	    "the file behind this descriptor has been deleted, and whoever opens its name "
	    "locks another: open it again");
}

int lock_open(struct lock *lock, struct why *why)
{
	lock->slot = -1;
	lock->lost = false;
	if (lock->method->open != NULL)
		return lock->method->open(lock, why);
	if (lock->name != NULL) {
		lock->fd = -1;
		return lockfile_open(lock, why);
	}
	if (look_at_descriptor(lock, why) != 0)
		return -1;
	return lockfile_current(lock) ? 0 : deleted(why);
}

/* Is the lock itself to be taken?  Not where a slot is a part of it (a byte of its
 * range); where a slot is something else, the lock is the gate at which slot holders
 * and plain holders meet. */
static bool takes_whole(const struct lock *lock)
{
	return lock->slots == 0 || (lock->method->can & CAN_RANGE) == 0;
}

/* Give back whatever has been taken, and stay open. */
static void drop(struct lock *lock)
{
	struct why ignored;

	slots_drop(lock);
	if (takes_whole(lock)) /* what else a caller's descriptor has of the range is not ours */
		lock->method->drop(lock, &ignored);
}

static enum outcome try(struct lock *lock, struct why *why)
{
	enum outcome outcome = takes_whole(lock) ? lock->method->take(lock, TRY, why) : TAKEN;

	if (outcome != TAKEN || lock->slots == 0)
		return outcome;
	outcome = slots_try(lock, why);
	if (outcome != TAKEN)
		drop(lock);
	return outcome;
}

/* Sleep in the lock call itself.  A timer only breaks the sleep off; what it meant is
 * for the clock to say, and when the time is up there is one last try.  (The queue's timer
 * must not go on here: each tick would cost the place among those who do not queue.) */
static enum outcome sleep_in_call(struct lock *lock, const struct deadline *deadline,
    struct why *why)
{
	enum outcome outcome;

	if (deadline->never)
		alarm_off();
	do {
		if (!deadline->never && alarm_set(deadline_left(deadline), why) != 0)
			return FAILED;
		outcome = lock->method->take(lock, SLEEP, why); /* K2 */
		if (outcome == BUSY && deadline_left(deadline) == 0)
			return lock->method->take(lock, TRY, why);
	} while (outcome == BUSY);
	return outcome;
}

static enum outcome sleep_for(struct lock *lock, const struct deadline *deadline, struct why *why)
{
	enum outcome outcome = takes_whole(lock) ? sleep_in_call(lock, deadline, why) : TAKEN;

	if (outcome != TAKEN || lock->slots == 0)
		return outcome;
	outcome = slots_try(lock, why);
	if (outcome == BUSY)
		outcome = slots_sleep(lock, deadline, why);
	if (outcome != TAKEN)
		drop(lock);
	return outcome;
}

/* TAKEN: it could be had.  It is not kept. */
static enum outcome free_now(struct lock *lock, struct why *why)
{
	enum outcome outcome;

	if (lock->method->idle != NULL)
		return lock->method->idle(lock) ? TAKEN : BUSY;
	outcome = try(lock, why);
	if (outcome == TAKEN)
		drop(lock);
	return outcome;
}

/* Our timer ticks on once it has struck, and would end the pause at its next tick. */
static void pause_for(int64_t duration, const struct deadline *deadline)
{
	int64_t left = deadline_left(deadline);
	struct timespec pause = {0, (long)(left < duration ? left : duration)};

	alarm_off();
	nanosleep(&pause, NULL);
}

/* For a second the queue has not moved.  If the lock is free now, and free still after a
 * while, then the one whose turn it is has been stopped, and is passed by.  The while is for
 * the busy machine, where it has been woken and does not run yet.  And a reader may find the lock
 * free for readers, or who wants a slot a free slot, while the first is not stopped at all: it
 * wants more than that, and sleeps. */
static enum outcome pass_stopped(struct lock *lock, struct queue *queue,
    const struct deadline *deadline, struct why *why)
{
	enum outcome outcome = free_now(lock, why);

	if (outcome == TAKEN && asleep_for(lock))
		outcome = BUSY;
	if (outcome != TAKEN)
		return outcome;
	CRASH_POINT("lock.passing");
	pause_for(SECOND / 4, deadline);
	return queue_stalled(queue) && !asleep_for(lock) ? try(lock, why) : BUSY;
}

static enum outcome wait_in_queue(struct lock *lock, struct queue *queue,
    const struct deadline *deadline, struct why *why)
{
	enum outcome outcome;

	for (;;) {
		switch (queue_await(queue, deadline)) {
		case TURN_EXPIRED:
			return BUSY;
		case TURN_STALLED:
			outcome = pass_stopped(lock, queue, deadline, why);
			if (outcome != BUSY)
				return outcome;
			break;
		case TURN_OURS:
			CRASH_POINT("lock.head");
			return sleep_for(lock, deadline, why);
		case TURN_BROKEN:
			return sleep_for(lock, deadline, why);
		}
	}
}

/* A caller's descriptor may hold the lock already, and the queue behind it would wait
 * for us while we wait for the queue.  To ask for what it has is nothing new, and to
 * ask for less can be had at once; to ask for more, it is let go first and then queued
 * for like anybody's: the kernel's own conversions let go first, too. */
static enum outcome convert(struct lock *lock, struct why *why)
{
	enum fdinfo_mode held = lock->name == NULL && lock->slots == 0
				    ? fdinfo_held(lock)
				    : FDINFO_NONE;
	enum outcome outcome = BUSY;

	if (held == FDINFO_NONE)
		return BUSY;
	if (held == FDINFO_EXCLUSIVE || lock->mode == SHARED)
		outcome = lock->method->take(lock, TRY, why);
	if (outcome == BUSY)
		lock->method->drop(lock, why);
	return outcome;
}

static enum outcome wait_for_turn(struct lock *lock, struct queue *queue,
    const struct deadline *deadline, struct why *why)
{
	enum outcome outcome = convert(lock, why);

	if (outcome == BUSY)
		outcome = wait_in_queue(lock, queue, deadline, why);
	return outcome;
}

static void say_waiting(const struct lock *lock, const struct patience *patience)
{
	if (patience->waits != NULL)
		patience->waits(lock, patience->context);
}

/* What a caller's descriptor has already it gets again, and less than that, whoever waits. */
static enum outcome ask_again(struct lock *lock, struct why *why)
{
	enum fdinfo_mode held;

	if (lock->name != NULL)
		return BUSY;
	if (lock->slots > 0)
		return fdinfo_slot(lock) < 0 ? BUSY : try(lock, why);
	held = fdinfo_held(lock);
	if (held == FDINFO_EXCLUSIVE || (held == FDINFO_SHARED && lock->mode == SHARED))
		return lock->method->take(lock, TRY, why);
	return BUSY;
}

/* Who waits for what else a caller's descriptor has, would wait for us, and we in the queue for him. */
static bool passes(const struct lock *lock, const struct patience *patience)
{
	return patience->passes || (lock->name == NULL && fdinfo_carries_more(lock));
}

/* Those who come later wait behind our ticket: among readers, a writer would never get in. */
static enum outcome sleep_past_queue(struct lock *lock, const struct deadline *deadline, struct why *why)
{
	enum outcome outcome = convert(lock, why);

	return outcome == BUSY ? sleep_for(lock, deadline, why) : outcome;
}

/* Nobody has had to wait yet, or somebody has: that decides whether we may just try. */
static enum outcome take_in_order(struct lock *lock, struct queue *queue,
    const struct patience *patience, struct why *why)
{
	enum queue_state state = queue_open(queue, lock);
	enum outcome outcome = BUSY;

	if (state != QUEUE_OPEN || (patience->try_once && queue_empty(queue)))
		outcome = try(lock, why);
	else
		outcome = passes(lock, patience) ? try(lock, why) : ask_again(lock, why);
	if (outcome != BUSY || patience->try_once)
		return outcome;
	say_waiting(lock, patience);
	if (state == QUEUE_UNUSABLE || !queue_join(queue, lock, &patience->deadline))
		return sleep_for(lock, &patience->deadline, why);
	if (passes(lock, patience))
		return sleep_past_queue(lock, &patience->deadline, why);
	return wait_for_turn(lock, queue, &patience->deadline, why);
}

static enum outcome take_unfairly(struct lock *lock, const struct patience *patience,
    struct why *why)
{
	enum outcome outcome = try(lock, why);

	if (outcome != BUSY || patience->try_once)
		return outcome;
	say_waiting(lock, patience);
	return sleep_for(lock, &patience->deadline, why);
}

bool lock_current(const struct lock *lock)
{
	return lock->file != NULL ? namefile_current(lock) : lockfile_current(lock);
}

enum outcome lock_take_open(struct lock *lock, const struct patience *patience, struct why *why)
{
	struct queue queue = {.fd = -1};
	enum outcome outcome;

	if (patience->unfair)
		outcome = take_unfairly(lock, patience, why);
	else
		outcome = take_in_order(lock, &queue, patience, why);
	alarm_off();
	queue_leave(&queue, lock);
	if (outcome != TAKEN)
		return outcome;
	CRASH_POINT("lock.taken");
	if (lock_current(lock)) /* K3 */
		return TAKEN;
	if (lock->name != NULL)
		return AGAIN;
	drop(lock);
	deleted(why);
	return FAILED;
}

enum outcome lock_take(struct lock *lock, const struct patience *patience, struct why *why)
{
	enum outcome outcome = FAILED;

	if (lock->method->await != NULL) {
		outcome = lock->method->await(lock, patience, why);
		if (outcome != TAKEN)
			lock_forget(lock);
		return outcome;
	}
	do {
		if (lock_open(lock, why) != 0)
			break;
		outcome = lock_take_open(lock, patience, why);
		if (outcome == TAKEN)
			return TAKEN;
		lock_forget(lock);
	} while (outcome == AGAIN);
	lock_forget(lock);
	return outcome;
}

void lock_forget(struct lock *lock)
{
	if (lock->method->release != NULL) {
		lock->method->release(lock);
		return;
	}
	if (lock->name == NULL || lock->fd < 0)
		return;
	close(lock->fd);
	lock->fd = -1;
	lock->slot = -1;
}

int lock_undo(struct lock *lock, struct why *why)
{
	if (look_at_descriptor(lock, why) != 0)
		return -1;
	return lock->method->drop(lock, why);
}
