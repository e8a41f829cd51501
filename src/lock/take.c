/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <time.h>

#include "lock/attempt.h"
#include "lock/queue.h"
#include "lock/take.h"
#include "sys/crash_points.h"
#include "sys/signals.h"

/* The tickets before ours may be those of stopped processes, or of one that only wants to hold the
 * others up.  On a busy machine, a living queue of short commands has its lock free most of the
 * time, while the next waiter wakes up: so there are many checks, over a time that is long enough
 * for it. */
static enum outcome take_deserted(struct lock *lock, struct queue *queue,
    const struct deadline *deadline, struct error *error)
{
	static const struct checks first = {50, SECOND / 5, 20 * MILLISECOND};
	static const struct checks next = {25, SECOND / 10, 20 * MILLISECOND};
	/* A replacer (--replace) leaves a lock free for as long as it looks who holds it. */
	static const struct checks behind_replacer = {50, 6 * SECOND / 10, 20 * MILLISECOND};
	const struct checks *checks = queue->lost_race              ? &next
	                              : queue_led_from_front(queue) ? &behind_replacer
	                                                            : &first;
	enum outcome outcome = BUSY;
	int seen = 0;

	if (deadline_left(deadline) > checks->spell)
		outcome = attempt_deserted(lock, checks, &seen, error);
	/* Busy early: the queue lives.  Busy late: another process that looked was faster. */
	if (seen > checks->count * 3 / 4)
		queue->lost_race = true;
	queue->check_at = clock_now() + (queue->lost_race ? SECOND / 10 : 9 * SECOND / 10) +
	                  attempt_jitter(SECOND / 10);
	return outcome;
}

/* With -n, and when the time is up: a lock that is free at each check belongs to no living queue.
 * If a caller's descriptor carries a lock already, a check would lose it. */
static enum outcome take_at_once(struct lock *lock, struct error *error)
{
	static const struct checks checks = {8, 4 * MILLISECOND, 3 * MILLISECOND};
	int seen;

	if (held_read(lock).mode != HELD_NONE)
		return BUSY;
	return attempt_deserted(lock, &checks, &seen, error);
}

static enum outcome take_by_preemption(struct lock *lock, const struct wait_options *wait,
    struct error *error)
{
	enum outcome outcome;

	wakeup_off();
	do {
		outcome = attempt_try(lock, error);
		if (outcome != BUSY)
			return outcome;
		if (!lock->spec->method->current(lock))
			return AGAIN;
		outcome = wait->preempt(wait->preemption);
	} while (outcome == AGAIN);
	return outcome;
}

/* LOCK is busy.  After a while a collector of slots (--take) gives back what it has: true after a
 * pause in which a holder's child may take one, and which is too short for -n to find the lock
 * deserted. */
static bool collects_again(const struct lock *lock, struct queue *queue,
    const struct wait_options *wait)
{
	static const struct timespec a_moment = {0, 3 * MILLISECOND / 2};

	if (lock->spec->take <= 1 || deadline_left(&wait->deadline) == 0)
		return false;
	nanosleep(&a_moment, NULL);
	if (queue != NULL)
		queue->check_at = clock_now() + SECOND;
	return true;
}

/* No ticket is before ours, or there is no queue. */
static enum outcome take_as_head(struct lock *lock, const struct wait_options *wait,
    struct error *error)
{
	if (wait->preempt != NULL)
		return take_by_preemption(lock, wait, error);
	return attempt_sleep(lock, wait, error);
}

/* Q3: is there an earlier ticket?  With the lock and the ticket in hand: if an earlier ticket has
 * been drawn meanwhile (--replace), the lock belongs to that ticket's owner, which sees by our
 * ticket that the lock is only in transit, and does not stop us for it.  So our ticket is given up
 * after this check, not before. */
static bool yield_to_earlier(struct lock *lock, struct queue *queue)
{
	CRASH_POINT("lock.transit");
	if (!queue_preceded(queue))
		return false;
	attempt_drop(lock);
	CRASH_POINT("lock.given-back");
	lock->end.lost = false; /* it does not count: no command has run */
	lock->end.stuck = 0;
	return true;
}

/* QUEUE is NULL for one that waits for no earlier ticket. */
static enum outcome wait_in_queue(struct lock *lock, struct queue *queue,
    const struct wait_options *wait, struct error *error)
{
	enum outcome outcome;
	int rounds = 0;

	for (;;) {
		switch (queue == NULL ? TURN_OURS : queue_await(queue, lock, wait)) {
		case TURN_EXPIRED:
			return take_at_once(lock, error);
		case TURN_CHECK:
			outcome = take_deserted(lock, queue, &wait->deadline, error);
			if (outcome != BUSY)
				return outcome;
			/* The replacer before us makes no progress: have the holder stopped
			 * ourselves. */
			if (++rounds < 2 || wait->preempt == NULL)
				continue;
			break;
		case TURN_OURS:
			CRASH_POINT("lock.head");
			break;
		case TURN_BROKEN:
			queue = NULL;
		}
		outcome = take_as_head(lock, wait, error);
		if (outcome == BUSY
			? !collects_again(lock, queue, wait)
			: outcome != TAKEN || queue == NULL || !yield_to_earlier(lock, queue))
			return outcome;
	}
}

/* A caller's descriptor gets what it carries already, and less than that, before all waiters. */
static enum outcome take_again(struct lock *lock, struct error *error)
{
	const struct held held = held_read(lock);

	if (lock->spec->slots > 0)
		return held.slot < 0 ? BUSY : attempt_try(lock, error);
	if (held.mode == HELD_EXCLUSIVE || (held.mode == HELD_SHARED && lock->spec->mode == SHARED))
		return lock->spec->method->take(lock, TRY, error);
	return BUSY;
}

/* A record lock changes its mode in one call, and what is held stays held until then: the waiters
 * before us wait for us.  Not where the other holders are stopped (--replace): we would be one of
 * them. */
static bool converts_in_place(const struct lock *lock, const struct held *held,
    const struct wait_options *wait)
{
	return (lock->spec->method->can & CAN_RANGE) != 0 && lock->spec->slots == 0 &&
	       held->mode != HELD_NONE && wait->preempt == NULL;
}

/* If a caller's descriptor carries the lock already, the queue behind it would wait for us while we
 * wait in the queue.  To take the same lock, or a lesser one, succeeds immediately.  For a greater
 * one, a flock is dropped first, and queued for: the kernel's own conversion of it drops first,
 * too. */
static enum outcome convert(struct lock *lock, const struct wait_options *wait, struct error *error)
{
	const struct held held = held_read(lock);
	enum outcome outcome;

	if (lock->spec->slots > 0 || held.mode == HELD_NONE)
		return BUSY;
	outcome = take_again(lock, error);
	if (outcome == BUSY && !converts_in_place(lock, &held, wait))
		lock->spec->method->drop(lock, error);
	return outcome;
}

/* If the caller's descriptor holds another lock, or keeps a part of this one, its waiters wait for
 * us while we queue behind them: skip the queue. */
static bool skips_queue(const struct lock *lock, const struct wait_options *wait)
{
	const struct held held = held_read(lock);

	return wait->past_queue || held.more || converts_in_place(lock, &held, wait);
}

/* The first try, where a queue was found. */
static enum outcome take_unless_preceded(struct lock *lock, struct queue *queue, bool skips,
    struct error *error)
{
	enum outcome outcome;

	if (queue->fd < 0 || skips)
		return attempt_try(lock, error);
	if (lock->spec->name == NULL)
		return take_again(lock, error);
	if (queue_preceded(queue))
		return BUSY;
	outcome = attempt_try(lock, error);
	return outcome == TAKEN && yield_to_earlier(lock, queue) ? BUSY : outcome;
}

/* Without tickets we may just try.  With tickets, too, in case their processes are stopped, or wait
 * for other parts of the file. */
static enum outcome take_without_waiting(struct lock *lock, struct queue *queue,
    const struct wait_options *wait, struct error *error)
{
	enum outcome outcome;

	if (wait->first || !queue_has_waiter(queue, lock) || skips_queue(lock, wait))
		return attempt_try(lock, error);
	outcome = take_again(lock, error);
	return outcome == BUSY ? take_at_once(lock, error) : outcome;
}

/* The ticket first: all that may take time, or that only a wait needs, comes after it.  A caller
 * that skips the queue still draws a ticket, so that later waiters queue behind it, and a writer
 * gets in among readers. */
static enum outcome take_waiting(struct lock *lock, struct queue *queue,
    const struct wait_options *wait, struct error *error)
{
	bool tried = queue->fd < 0, skips;
	bool joined =
	    queue_join(queue, lock, wait->first || wait->preempt != NULL, &wait->deadline);
	enum when_busy when_busy;
	enum outcome outcome = BUSY;

	if (queue->full) { /* as with -n: a deserted lock is free */
		CRASH_POINT("queue.full");
		lock->busy = BUSY_CROWDED;
		return take_without_waiting(lock, queue, wait, error);
	}
	skips = skips_queue(lock, wait); /* before a conversion drops a part of what is held */
	if (!tried)
		outcome = take_unless_preceded(lock, queue, skips, error);
	if (outcome != BUSY)
		return outcome;
	lock->place.admitted = lock->place.admitted || joined;
	lock->place.unordered = !joined || queue->hostile;
	when_busy = wait->waits == NULL ? WAIT : wait->waits(lock, wait->context);
	if (when_busy == GIVE_UP) {
		lock->busy = BUSY_INHERITED;
		return BUSY;
	}
	outcome = joined ? convert(lock, wait, error) : BUSY;
	if (outcome != BUSY)
		return outcome;
	return wait_in_queue(lock, joined && !skips && when_busy != WAIT_PAST_QUEUE ? queue : NULL,
	    wait, error);
}

enum outcome lock_take_open(struct lock *lock, const struct wait_options *wait, struct error *error)
{
	/* A lock that is opened again keeps the place that it has had. */
	struct queue queue = {.fd = -1, .places = lock->place.admitted ? 0 : wait->places};
	enum outcome outcome = BUSY;

	lock->busy = wait->try_once ? BUSY_NOW : BUSY_TIMEOUT;
	queue_open(&queue, lock);
	lock->place.queued = queue.fd >= 0;
	if (queue.fd < 0)
		outcome = attempt_sleep(lock, NULL, error);
	else if (wait->try_once)
		outcome = take_without_waiting(lock, &queue, wait, error);
	if (outcome == BUSY && !wait->try_once) {
		outcome = take_waiting(lock, &queue, wait, error);
		wakeup_off();
	}
	if (queue.fd >= 0)
		queue_leave(&queue, lock);
	if (outcome == FAILED && lock->spec->method->family == OF_FILES &&
	    !lock->spec->method->current(lock))
		return AGAIN; /* its directory was removed: there may be another by now */
	if (outcome != TAKEN)
		return outcome;
	CRASH_POINT("lock.taken");
	if (lock->spec->method->current(lock)) /* K3: the name still means it */
		return TAKEN;
	/* no release unlocks a caller's descriptor, and its next open says why it cannot be had */
	if (lock->spec->name == NULL)
		attempt_drop(lock);
	return AGAIN;
}

/* The file may have a lease on it (fcntl(2), Samba): the open has told the holder of the lease, and
 * the kernel ends the lease in its time. */
enum outcome lock_open_in_time(struct lock *lock, const struct wait_options *wait,
    struct error *error)
{
	static const struct timespec pause = {0, 20 * MILLISECOND};

	lock->slot = -1;
	lock->kernel.slots.count = 0;
	lock->end = (struct lock_end){0};
	while (lock->spec->method->open(lock, error) != 0) {
		if (error->errnum != EWOULDBLOCK)
			return FAILED;
		lock->busy = wait->try_once ? BUSY_NOW : BUSY_TIMEOUT;
		if (wait->try_once || deadline_left(&wait->deadline) == 0) {
			error->kind = ERROR_NONE; /* for longer it might have been had */
			return BUSY;
		}
		nanosleep(&pause, NULL);
	}
	return TAKEN;
}

enum outcome lock_take_in_turn(struct lock *lock, const struct wait_options *wait,
    struct error *error)
{
	enum outcome opened = lock_open_in_time(lock, wait, error);

	return opened == TAKEN ? lock_take_open(lock, wait, error) : opened;
}

enum outcome lock_take(struct lock *lock, const struct wait_options *wait, struct error *error)
{
	enum outcome outcome;

	do {
		outcome = lock->spec->method->acquire(lock, wait, error);
		if (outcome != TAKEN)
			lock->spec->method->release(lock);
	} while (outcome == AGAIN);
	return outcome;
}
