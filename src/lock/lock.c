#include <config.h>

#include <errno.h>
#include <unistd.h>

#include "sys/wakeup.h"
#include "lock/attempt.h"
#include "sys/crash_points.h"
#include "lock/held_mode.h"
#include "lock/lock.h"
#include "lock/lockfile.h"
#include "lock/queue.h"

static int look_at_descriptor(struct lock *lock, struct error *error)
{
	if (lockfile_identify(lock) == 0)
		return 0;
	if (errno == EBADF) {
		error_say(error, ERROR_LOCKABLE,
		    "this descriptor is not open; a shell opens it with exec %d>>FILE, and ksh and mksh "
		    "hand it on with %d>&%d behind the command", lock->fd, lock->fd, lock->fd);
		error->errnum = EBADF;
		return -1;
	}
	return error_set(error, ERROR_LOCKABLE, "cannot look at this descriptor");
}

static int deleted(struct error *error)
{
	return error_say(error, ERROR_LOCKABLE,
	    "the file behind this descriptor has been deleted, and whoever opens its name "
	    "locks another: open it again");
}

int lock_open(struct lock *lock, struct error *error)
{
	lock->slot = -1;
	lock->lost = false;
	if (lock->method->open != NULL)
		return lock->method->open(lock, error);
	if (lock->name != NULL) {
		lock->fd = -1;
		return lockfile_open(lock, error);
	}
	if (look_at_descriptor(lock, error) != 0)
		return -1;
	return lockfile_current(lock) ? 0 : deleted(error);
}

bool lock_current(const struct lock *lock)
{
	return lock->entry != NULL ? lock->method->current(lock) : lockfile_current(lock);
}

/* Tickets lie before ours, but they may be those of stopped processes, or of one that only wants to
 * hold the others up.  A living queue of short commands on a busy machine has its lock free most of
 * the time, while the next one wakes up: so there are many looks, and time to come for that one. */
static enum outcome take_deserted(struct lock *lock, struct queue *queue, const struct deadline *deadline,
    struct error *error)
{
	static const struct looks first = {50, SECOND / 5, 20 * MILLISECOND};
	static const struct looks next = {25, SECOND / 10, 20 * MILLISECOND};
	const struct looks *looks = queue->beaten ? &next : &first;
	enum outcome outcome = BUSY;
	int seen = 0;

	if (deadline_left(deadline) > looks->spell)
		outcome = attempt_deserted(lock, looks, &seen, error);
	/* Busy soon: the queue lives.  Busy late: another process that looked was faster. */
	if (seen > looks->count * 3 / 4)
		queue->beaten = true;
	queue->look_at = clock_now() + (queue->beaten ? SECOND / 10 : 9 * SECOND / 10) +
			 attempt_jitter(SECOND / 10);
	return outcome;
}

/* For the process that does not wait, or not any longer: a lock that is free at each look belongs to
 * no living queue.  What a caller's descriptor has already would be lost by a look. */
static enum outcome take_at_once(struct lock *lock, struct error *error)
{
	static const struct looks looks = {8, 4 * MILLISECOND, 3 * MILLISECOND};
	int seen;

	if (lock->name == NULL && fdinfo_held(lock) != FDINFO_NONE)
		return BUSY;
	return attempt_deserted(lock, &looks, &seen, error);
}

static enum outcome preempt(struct lock *lock, const struct wait_options *wait_options, struct error *error)
{
	enum outcome outcome;

	alarm_off();
	do {
		outcome = attempt_try(lock, error);
		if (outcome != BUSY)
			return outcome;
		if (!lock_current(lock))
			return AGAIN;
		outcome = wait_options->preempt(wait_options->preemption);
	} while (outcome == AGAIN);
	return outcome;
}

/* No ticket is before ours, or there is no queue. */
static enum outcome take_as_head(struct lock *lock, const struct wait_options *wait_options, struct error *error)
{
	if (wait_options->preempt != NULL)
		return preempt(lock, wait_options, error);
	return attempt_sleep(lock, &wait_options->deadline, error);
}

/* With the lock and the ticket in hand: if an earlier ticket has been drawn meanwhile (--replace), the
 * lock is its drawer's.  The ticket is given up after this look: until then, that drawer sees that
 * the lock is only passing through our hands, and stops nobody for it. */
static bool give_back(struct lock *lock, const struct queue *queue)
{
	CRASH_POINT("lock.transit");
	if (!queue_preceded(queue))
		return false;
	attempt_drop(lock);
	lock->lost = false; /* whatever has become of it: no command has run */
	return true;
}

static enum outcome wait_in_queue(struct lock *lock, struct queue *queue, const struct wait_options *wait_options,
    struct error *error)
{
	enum outcome outcome;
	int looks = 0;

	for (;;) {
		switch (queue_await(queue, &wait_options->deadline)) {
		case TURN_EXPIRED:
			return take_at_once(lock, error);
		case TURN_LOOK:
			outcome = take_deserted(lock, queue, &wait_options->deadline, error);
			if (outcome != BUSY)
				return outcome;
			/* The replacer before us does not get on: have the holder stopped ourselves. */
			if (++looks < 2 || wait_options->preempt == NULL)
				continue;
			break;
		case TURN_OURS:
			CRASH_POINT("lock.head");
			break;
		case TURN_BROKEN:
			return take_as_head(lock, wait_options, error);
		}
		outcome = take_as_head(lock, wait_options, error);
		if (outcome != TAKEN || !give_back(lock, queue))
			return outcome;
	}
}

/* A caller's descriptor may hold the lock already, and the queue behind it would wait
 * for us while we wait for the queue.  To ask for what it has is nothing new, and to
 * ask for less can be had at once; to ask for more, it is let go first and then queued
 * for like anybody's: the kernel's own conversions let go first, too. */
static enum outcome convert(struct lock *lock, struct error *error)
{
	enum fdinfo_mode held = lock->name == NULL && lock->slots == 0
				    ? fdinfo_held(lock)
				    : FDINFO_NONE;
	enum outcome outcome = BUSY;

	if (held == FDINFO_NONE)
		return BUSY;
	if (held == FDINFO_EXCLUSIVE || lock->mode == SHARED)
		outcome = lock->method->take(lock, TRY, error);
	if (outcome == BUSY)
		lock->method->drop(lock, error);
	return outcome;
}

static enum outcome wait_for_turn(struct lock *lock, struct queue *queue,
    const struct wait_options *wait_options, struct error *error)
{
	enum outcome outcome = convert(lock, error);

	if (outcome == BUSY)
		outcome = wait_in_queue(lock, queue, wait_options, error);
	return outcome;
}

static void say_waiting(const struct lock *lock, const struct wait_options *wait_options)
{
	if (wait_options->waits != NULL)
		wait_options->waits(lock, wait_options->context);
}

/* What a caller's descriptor has already it gets again, and less than that, whoever waits. */
static enum outcome ask_again(struct lock *lock, struct error *error)
{
	enum fdinfo_mode held;

	if (lock->name != NULL)
		return BUSY;
	if (lock->slots > 0)
		return fdinfo_slot(lock) < 0 ? BUSY : attempt_try(lock, error);
	held = fdinfo_held(lock);
	if (held == FDINFO_EXCLUSIVE || (held == FDINFO_SHARED && lock->mode == SHARED))
		return lock->method->take(lock, TRY, error);
	return BUSY;
}

/* Who waits for what else a caller's descriptor has, would wait for us, and we in the queue for him. */
static bool passes(const struct lock *lock, const struct wait_options *wait_options)
{
	return wait_options->passes || (lock->name == NULL && fdinfo_carries_more(lock));
}

/* Those who come later wait behind our ticket: among readers, a writer would never get in. */
static enum outcome sleep_past_queue(struct lock *lock, const struct deadline *deadline, struct error *error)
{
	enum outcome outcome = convert(lock, error);

	return outcome == BUSY ? attempt_sleep(lock, deadline, error) : outcome;
}

/* Nobody has had to wait yet, or somebody has: that decides whether we may just try. */
static enum outcome take_in_order(struct lock *lock, struct queue *queue,
    const struct wait_options *wait_options, struct error *error)
{
	enum queue_state state = queue_open(queue, lock);
	enum outcome outcome = BUSY;

	if (state != QUEUE_OPEN || (wait_options->try_once && queue_empty(queue)) || passes(lock, wait_options))
		outcome = attempt_try(lock, error);
	else {
		outcome = ask_again(lock, error);
		if (outcome == BUSY && wait_options->try_once)
			outcome = take_at_once(lock, error);
	}
	if (outcome != BUSY || wait_options->try_once)
		return outcome;
	say_waiting(lock, wait_options);
	if (state == QUEUE_UNUSABLE ||
	    !queue_join(queue, lock, wait_options->preempt != NULL, &wait_options->deadline))
		return take_as_head(lock, wait_options, error);
	if (passes(lock, wait_options))
		return sleep_past_queue(lock, &wait_options->deadline, error);
	return wait_for_turn(lock, queue, wait_options, error);
}

enum outcome lock_take_open(struct lock *lock, const struct wait_options *wait_options, struct error *error)
{
	struct queue queue = {.fd = -1};
	enum outcome outcome = take_in_order(lock, &queue, wait_options, error);

	alarm_off();
	queue_leave(&queue, lock);
	if (outcome != TAKEN)
		return outcome;
	CRASH_POINT("lock.taken");
	if (lock_current(lock)) /* K3 */
		return TAKEN;
	if (lock->name != NULL)
		return AGAIN;
	attempt_drop(lock);
	deleted(error);
	return FAILED;
}

enum outcome lock_take(struct lock *lock, const struct wait_options *wait_options, struct error *error)
{
	enum outcome outcome = FAILED;

	if (lock->method->await != NULL) {
		outcome = lock->method->await(lock, wait_options, error);
		if (outcome != TAKEN)
			lock_forget(lock);
		return outcome;
	}
	do {
		if (lock_open(lock, error) != 0)
			break;
		outcome = lock_take_open(lock, wait_options, error);
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

int lock_undo(struct lock *lock, struct error *error)
{
	if (look_at_descriptor(lock, error) != 0)
		return -1;
	return lock->method->drop(lock, error);
}
