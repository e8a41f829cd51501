/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <time.h>

#include "lock/attempt.h"
#include "lock/conversion.h"
#include "lock/held_mode.h"
#include "lock/lockset.h"
#include "lock/slots.h"
#include "lock/taking.h"
#include "sys/crash_points.h"
#include "sys/memory.h"
#include "sys/signals.h"

/* ---- what the phases have in common ---- */

/* Tell the caller STEP, and go on with PHASE after its answer. */
static enum phase ask(struct taking *taking, enum step step, enum phase phase)
{
	taking->step = step;
	taking->resume = phase;
	return PHASE_ANSWER;
}

/* The attempt at the lock has come to OUTCOME.  If the record needs the command's process, this
 * phase makes the attempt once more. */
static enum phase end_with(struct taking *taking, enum outcome outcome)
{
	if (outcome == NEEDS_CHILD)
		return ask(taking, STEP_NEEDS_CHILD, taking->phase);
	taking->outcome = outcome;
	return PHASE_END;
}

/* Q3: is there an earlier ticket?  With the lock and the ticket in hand: if an earlier ticket has
 * been drawn meanwhile (--replace), the lock belongs to that ticket's owner, which sees by our
 * ticket that the lock is only in transit, and does not stop us for it.  So our ticket is given up
 * after this check, not before. */
static bool yield_to_earlier(struct taking *taking)
{
	struct lock *lock = taking->lock;

	CRASH_POINT("lock.transit");
	if (!queue_preceded(&taking->queue))
		return false;
	attempt_drop(lock);
	CRASH_POINT("lock.given-back");
	lock->end.lost = false; /* it does not count: no command has run */
	lock->end.stuck = 0;
	return true;
}

/* The name has moved on, time and again.  Whatever process moves it, -w is kept, and -n ends: BUSY,
 * when that is so. */
static enum outcome after_moves(struct taking *taking)
{
	enum { OFTEN = 100 };
	static const struct timespec for_others = {0, MILLISECOND};
	const struct wait_options *wait = taking->wait;

	if (++taking->moves < OFTEN)
		return AGAIN;
	nanosleep(&for_others, NULL);
	if (!wait->try_once && deadline_left(&wait->deadline) > 0)
		return AGAIN;
	taking->lock->busy = busy_within(wait);
	return BUSY;
}

/* The taking has come to OUTCOME, other than TAKEN: release what there is.  AGAIN: from the
 * start. */
static enum phase start_over_or_end(struct taking *taking, enum outcome outcome)
{
	lockset_release(taking->locks, taking->count);
	if (outcome == AGAIN)
		outcome = after_moves(taking);
	if (outcome == AGAIN)
		return PHASE_OPEN;
	/* The holder is looked for, and stopped, while the lock is not open here. */
	if (outcome == BUSY && taking->wait->preempt == PREEMPT_TOGGLE)
		return ask(taking, STEP_HELD, PHASE_OPEN);
	return ask(taking, outcome == BUSY ? STEP_BUSY : STEP_FAILED, PHASE_END);
}

/* ---- PHASE_OPEN ---- */

/* The file may have a lease on it (fcntl(2), Samba): the open has told the holder of the lease, and
 * the kernel ends the lease in its time. */
static enum outcome open_in_time(struct lock *lock, const struct wait_options *wait,
    struct error *error)
{
	static const struct timespec between_opens = {0, 20 * MILLISECOND};

	lock->slot = -1;
	lock->kernel.slots.count = 0;
	lock->end = (struct lock_end){0};
	while (lock->spec->method->open(lock, error) != 0) {
		if (error->errnum != EWOULDBLOCK)
			return FAILED;
		lock->busy = busy_within(wait);
		if (wait->try_once || deadline_left(&wait->deadline) == 0) {
			error->kind = ERROR_NONE; /* it might have been had by waiting longer */
			return BUSY;
		}
		nanosleep(&between_opens, NULL);
	}
	return TAKEN;
}

/* Several locks: open them all, and find the order in which to take them. */
static enum outcome open_all(struct taking *taking, struct error *error)
{
	enum outcome outcome = TAKEN;
	struct lock *failed;

	if (taking->order == &taking->single)
		taking->order = memory_lasting(taking->count * sizeof(struct lock *));
	if (taking->order == NULL)
		return error_plain(error, ERROR_SYSTEM, "no memory");

	for (unsigned i = 0; i < taking->count; i++)
		taking->locks[i].fd = -1;
	for (unsigned i = 0; i < taking->count && outcome == TAKEN; i++) {
		taking->lock = &taking->locks[i];
		outcome = open_in_time(taking->lock, taking->wait, error);
	}
	if (outcome != TAKEN)
		return outcome;

	lockset_sort(taking->locks, taking->count, taking->order);
	failed = lockset_prepare(taking->order, taking->count, error);
	if (failed == NULL)
		return TAKEN;
	taking->lock = failed;
	return FAILED;
}

static enum phase open_locks(struct taking *taking, struct error *error)
{
	enum outcome outcome;

	taking->at = 0;
	if (taking->locks->spec->method->family == ON_SERVER)
		return PHASE_ASK_SERVER;
	outcome = taking->count > 1 ? open_all(taking, error)
	                            : open_in_time(taking->lock, taking->wait, error);
	if (outcome != TAKEN)
		return start_over_or_end(taking, outcome);
	taking->lock = taking->order[0];
	return PHASE_FIRST_TRY;
}

/* ---- PHASE_ASK_SERVER ---- */

static enum phase ask_server(struct taking *taking, struct error *error)
{
	struct lock *lock = taking->lock;
	enum outcome outcome;

	if (taking->when_busy == GIVE_UP) {
		lock->busy = BUSY_INHERITED;
		return end_with(taking, BUSY);
	}
	outcome = lock->spec->method->ask(lock, taking->wait, error);
	if (outcome == WAITS)
		return ask(taking, STEP_WAITS, PHASE_ASK_SERVER);
	return end_with(taking, outcome);
}

/* ---- the tries before a wait ---- */

static enum phase try_first(struct taking *taking, struct error *error)
{
	const struct wait_options *wait = taking->wait;
	struct lock *lock = taking->lock;
	enum outcome outcome;

	lock->busy = busy_within(wait);
	taking->queue = (struct queue){
	    .fd = -1,
	    /* A lock that is opened again keeps the place that it has had. */
	    .places = lock->place.admitted ? 0 : wait->places,
	};
	taking->joined = false;
	taking->checks = 0;

	queue_open(&taking->queue, lock);
	lock->place.queued = taking->queue.fd >= 0;
	if (lock->place.queued)
		return wait->try_once ? PHASE_TRY_PAST : PHASE_JOIN;
	outcome = wait->try_once ? attempt_once(lock, error) : attempt_try(lock, error);
	if (outcome == BUSY && !wait->try_once)
		return PHASE_JOIN;
	return end_with(taking, outcome);
}

/* With -n, and when the time is up: a lock that is free at each check belongs to no living queue.
 * If a caller's descriptor carries a lock already, a check would lose it. */
static enum outcome take_at_once(struct lock *lock, struct error *error)
{
	static const struct checks checks = {8, 7 * MILLISECOND, 10 * MILLISECOND, false};
	enum life life;

	if (held_read(lock).mode != HELD_NONE)
		return BUSY;
	return attempt_deserted(lock, &checks, NULL, &life, error);
}

/* Without tickets we may just try.  With tickets, too, in case their processes are stopped, or wait
 * for other parts of the file. */
static enum phase try_past_queue(struct taking *taking, struct error *error)
{
	struct lock *lock = taking->lock;
	const struct wait_options *wait = taking->wait;
	enum outcome outcome;

	if (wait->first || !queue_has_waiter(&taking->queue, lock) ||
	    conversion_skips_queue(lock, wait))
		return end_with(taking, attempt_once(lock, error));
	outcome = conversion_again(lock, error);
	if (outcome == BUSY)
		outcome = take_at_once(lock, error);
	return end_with(taking, outcome);
}

static enum phase begin_wait(struct taking *taking)
{
	struct lock *lock = taking->lock;

	lock->place.admitted = lock->place.admitted || taking->joined;
	lock->place.unordered = !taking->joined || taking->queue.hostile;
	return ask(taking, STEP_WAITS, PHASE_CONVERT);
}

/* The ticket first: all that may take time, or that only a wait needs, comes after it.  A caller
 * that skips the queue still draws a ticket, so that later waiters queue behind it, and a writer
 * gets in among readers. */
static enum phase join(struct taking *taking)
{
	const struct wait_options *wait = taking->wait;
	const bool in_front = wait->first || wait->preempt == PREEMPT_REPLACE;
	struct lock *lock = taking->lock;
	struct queue *queue = &taking->queue;
	const bool tried = queue->fd < 0;

	taking->joined = queue_join(queue, lock, in_front, &wait->deadline);
	if (queue->full) {
		CRASH_POINT("queue.full");
		lock->busy = BUSY_CROWDED;
		return PHASE_TRY_PAST; /* as with -n: a deserted lock is free */
	}
	/* before a conversion drops a part of what is held */
	taking->skips = conversion_skips_queue(lock, wait);
	return tried ? begin_wait(taking) : PHASE_TRY_IN_TURN;
}

/* The first try, where a queue was found. */
static enum phase try_in_turn(struct taking *taking, struct error *error)
{
	struct lock *lock = taking->lock;
	struct queue *queue = &taking->queue;
	enum outcome outcome;

	if (queue->fd < 0 || taking->skips)
		outcome = attempt_try(lock, error);
	else if (lock->spec->name == NULL)
		outcome = conversion_again(lock, error);
	else if (queue_preceded(queue))
		outcome = BUSY;
	else {
		outcome = attempt_try(lock, error);
		if (outcome == TAKEN && yield_to_earlier(taking))
			outcome = BUSY;
	}
	return outcome == BUSY ? begin_wait(taking) : end_with(taking, outcome);
}

/* ---- the wait ---- */

/* With our ticket, behind the earlier ones? */
static bool is_in_line(const struct taking *taking)
{
	return taking->joined && !taking->skips && taking->when_busy != WAIT_PAST_QUEUE;
}

static enum phase convert(struct taking *taking, struct error *error)
{
	struct lock *lock = taking->lock;
	enum outcome outcome = BUSY;

	if (taking->when_busy == GIVE_UP) {
		lock->busy = BUSY_INHERITED;
		return end_with(taking, BUSY);
	}
	if (taking->joined)
		outcome = conversion_begin(lock, taking->wait, error);
	if (outcome != BUSY)
		return end_with(taking, outcome);
	return is_in_line(taking) ? PHASE_LINE : PHASE_HEAD;
}

/* The tickets before ours may be those of stopped processes, or of one that only wants to hold the
 * others up.  On a busy machine, a living queue of short commands has its lock free most of the
 * time, while the next waiter wakes up: so there are many checks, over a time that is long enough
 * for it. */
static enum outcome take_deserted(struct taking *taking, struct error *error)
{
	static const struct checks first = {50, 22 * SECOND / 100, SECOND / 2, true};
	static const struct checks next = {25, 12 * SECOND / 100, SECOND / 2, true};
	/* A replacer (--replace) leaves a lock free for as long as it looks for the holder. */
	static const struct checks behind_replacer = {50, 62 * SECOND / 100, SECOND / 2, true};
	struct queue *queue = &taking->queue;
	const struct checks *checks = &first;
	enum life life = LIFE_HOLDER;
	enum outcome outcome = BUSY;
	int64_t pause = 9 * SECOND / 10;

	if (queue->lost_race)
		checks = &next;
	else if (queue_led_from_front(queue))
		checks = &behind_replacer;
	if (deadline_left(&taking->wait->deadline) > checks->spell)
		outcome = attempt_deserted(taking->lock, checks, queue, &life, error);
	if (outcome == NEEDS_CHILD)
		return NEEDS_CHILD; /* QUEUE->check_at has passed: the next check comes at once */
	queue->lost_race = queue->lost_race || life == LIFE_RACE;
	queue->sleepers = life == LIFE_SLEEPER ? queue->sleepers + 1 : 0;
	/* That costs a read of the list of all locks, which stops all locking of the machine: after
	 * 2 seconds again, 4, 8, and 8. */
	if (queue->sleepers > 0)
		pause = SECOND << (queue->sleepers < 3 ? queue->sleepers : 3);
	else if (queue->lost_race)
		pause = SECOND / 10;
	queue->check_at = clock_now() + pause + attempt_jitter(SECOND / 10);
	return outcome;
}

static enum phase check_deserted(struct taking *taking, struct error *error)
{
	enum outcome outcome = take_deserted(taking, error);

	if (outcome != BUSY)
		return end_with(taking, outcome);
	taking->checks++;
	/* A replacer before us that makes no progress: have the holder stopped ourselves. */
	if (taking->checks >= 2 && taking->wait->preempt == PREEMPT_REPLACE)
		return PHASE_HEAD;
	return PHASE_LINE;
}

static enum phase stand_in_line(struct taking *taking, struct error *error)
{
	switch (queue_await(&taking->queue, &taking->wait->deadline)) {
	case TURN_EXPIRED:
		return end_with(taking, take_at_once(taking->lock, error));
	case TURN_CHECK:
		return check_deserted(taking, error);
	case TURN_OURS:
		CRASH_POINT("lock.head");
		return PHASE_HEAD;
	case TURN_BROKEN:
		taking->joined = false;
		return PHASE_HEAD;
	}
	return PHASE_HEAD;
}

/* LOCK is busy.  After a while a collector of slots (--take) gives back what it has: true after a
 * pause in which a holder's child may take one, and which is too short for -n to find the lock
 * deserted. */
static bool collects_again(struct taking *taking)
{
	static const struct timespec for_others = {0, 3 * MILLISECOND / 2};

	if (!slots_collects(taking->lock) || deadline_left(&taking->wait->deadline) == 0)
		return false;
	nanosleep(&for_others, NULL);
	taking->queue.check_at = clock_now() + SECOND;
	return true;
}

/* Try, or sleep for the nap that the caller has asked for: in the kernel's queue for the lock,
 * which would else be free while the caller searches for its holder, for so long that a waiter
 * takes it for deserted. */
static enum outcome try_or_nap(struct taking *taking, struct error *error)
{
	const struct deadline rest = deadline_after(taking->nap);
	enum outcome outcome;

	if (taking->nap == 0)
		outcome = attempt_try(taking->lock, error);
	else
		outcome = attempt_sleep(taking->lock, &rest, error);
	wakeup_off();
	return outcome;
}

static enum phase stand_at_head(struct taking *taking, struct error *error)
{
	const struct wait_options *wait = taking->wait;
	struct lock *lock = taking->lock;
	enum outcome outcome;

	if (wait->preempt == PREEMPT_REPLACE)
		outcome = try_or_nap(taking, error);
	else
		outcome = attempt_sleep(lock, &wait->deadline, error);

	if (outcome == TAKEN && is_in_line(taking) && yield_to_earlier(taking)) {
		taking->nap = 0;
		return PHASE_LINE;
	}
	if (outcome != BUSY)
		return end_with(taking, outcome);
	if (wait->preempt == PREEMPT_REPLACE) {
		if (lock->spec->method->current(lock))
			return ask(taking, STEP_HELD, PHASE_HEAD);
		return end_with(taking, AGAIN);
	}
	if (!collects_again(taking))
		return end_with(taking, BUSY);
	return is_in_line(taking) ? PHASE_LINE : PHASE_HEAD;
}

/* ---- PHASE_END ---- */

static void leave_queue(struct taking *taking)
{
	if (taking->queue.fd >= 0)
		queue_leave(&taking->queue, taking->lock);
}

/* Is the lock still what its name means? */
static enum outcome verify(struct lock *lock, enum outcome outcome)
{
	const struct method *method = lock->spec->method;

	/* if its directory was removed, there may be another by now */
	if (outcome == FAILED && method->family == OF_FILES && !method->current(lock))
		return AGAIN;
	if (outcome != TAKEN || method->family == ON_SERVER)
		return outcome;
	CRASH_POINT("lock.taken");
	if (method->current(lock)) /* K3: the name still means it */
		return TAKEN;
	/* no release unlocks a caller's descriptor, and its next open says why it cannot be had */
	if (lock->spec->name == NULL)
		attempt_drop(lock);
	return AGAIN;
}

/* One of several locks is taken: the next of them that no other covers.  TAKEN: there is none, and
 * all are ours. */
static enum outcome find_next(struct taking *taking)
{
	while (++taking->at < taking->count) {
		taking->lock = taking->order[taking->at];
		if (!taking->lock->place.covered)
			return BUSY;
		if (!lockset_still_ours(taking->lock))
			return AGAIN;
	}
	for (unsigned i = 0; i < taking->count; i++) {
		taking->lock = taking->order[i];
		if (!lockset_still_ours(taking->lock))
			return AGAIN;
	}
	return TAKEN;
}

static enum phase end(struct taking *taking)
{
	enum outcome outcome;

	wakeup_off();
	leave_queue(taking);
	outcome = verify(taking->lock, taking->outcome);
	if (outcome == TAKEN && taking->count > 1) {
		outcome = find_next(taking);
		if (outcome == BUSY)
			return PHASE_FIRST_TRY;
	}
	if (outcome == TAKEN)
		return ask(taking, STEP_TAKEN, PHASE_END);
	return start_over_or_end(taking, outcome);
}

/* ---- the whole ---- */

void taking_begin(struct taking *taking, struct lock *locks, unsigned count,
    const struct wait_options *wait)
{
	*taking = (struct taking){
	    .locks = locks,
	    .count = count,
	    .wait = wait,
	    .lock = locks,
	    .phase = PHASE_OPEN,
	    .single = locks,
	    .order = &taking->single,
	    .queue.fd = -1,
	};
}

enum step taking_step(struct taking *taking, struct error *error)
{
	for (;;) {
		switch (taking->phase) {
		case PHASE_OPEN:
			taking->phase = open_locks(taking, error);
			break;
		case PHASE_ASK_SERVER:
			taking->phase = ask_server(taking, error);
			break;
		case PHASE_FIRST_TRY:
			taking->phase = try_first(taking, error);
			break;
		case PHASE_TRY_PAST:
			taking->phase = try_past_queue(taking, error);
			break;
		case PHASE_JOIN:
			taking->phase = join(taking);
			break;
		case PHASE_TRY_IN_TURN:
			taking->phase = try_in_turn(taking, error);
			break;
		case PHASE_CONVERT:
			taking->phase = convert(taking, error);
			break;
		case PHASE_LINE:
			taking->phase = stand_in_line(taking, error);
			break;
		case PHASE_HEAD:
			taking->phase = stand_at_head(taking, error);
			break;
		case PHASE_END:
			taking->phase = end(taking);
			break;
		case PHASE_ANSWER:
			taking->phase = taking->resume;
			return taking->step;
		}
	}
}

unsigned taking_place(struct taking *taking)
{
	return taking->joined ? queue_place(&taking->queue) : 0;
}

void taking_give_up(struct taking *taking)
{
	wakeup_off();
	leave_queue(taking);
	lockset_release(taking->locks, taking->count);
}
