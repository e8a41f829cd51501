/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>

#include "lock/attempt.h"
#include "lock/conversion.h"
#include "lock/held_mode.h"
#include "lock/lockset.h"
#include "lock/slots.h"
#include "lock/taking.h"
#include "sys/crash_points.h"
#include "sys/memory.h"
#include "sys/signals.h"
#include "sys/waiting.h"

/* ---- what the phases have in common ---- */

/* Return STEP to the caller, and go on with PHASE after its answer. */
static enum phase taking_ask(struct taking *taking, enum step step, enum phase phase)
{
	taking->step = step;
	taking->resume = phase;
	return PHASE_ANSWER;
}

/* The attempt at the lock ends with OUTCOME.  NEEDS_CHILD: ask the caller for the command's
 * process; then the same phase makes the attempt again. */
static enum phase end_with(struct taking *taking, enum outcome outcome)
{
	if (outcome == NEEDS_CHILD)
		return taking_ask(taking, STEP_NEEDS_CHILD, taking->phase);
	taking->outcome = outcome;
	return PHASE_END;
}

/* Release LOCK; no command has run under it. */
static void give_back(struct lock *lock)
{
	attempt_drop(lock);
	CRASH_POINT("lock.given-back");
	lock->end.lost = false; /* this loss does not count */
	lock->end.stuck = 0;
}

/* Step Q3 of tests/models.  We have the lock and our ticket in hand: is there an earlier ticket of
 * a process that is not stopped?  It may have been drawn meanwhile (--replace).  Then give the lock
 * back, so that the earlier process gets it.  As long as we have our ticket, that process sees that
 * we hold the lock only for a moment, and does not signal us.  So give the ticket up after this
 * check, not before.  Returns whether the lock was given back. */
static bool yield_to_earlier(struct taking *taking)
{
	struct lock *lock = taking->lock;

	CRASH_POINT("lock.transit");
	if (!queue_preceded(&taking->queue))
		return false;
	give_back(lock);
	return true;
}

/* A later waiter with --supersede has taken our place.  If TAKEN, we hold LOCK already: give it
 * back before our ticket, as yield_to_earlier() does. */
static enum phase give_way(struct taking *taking, bool taken)
{
	struct lock *lock = taking->lock;

	CRASH_POINT("lock.superseded");
	if (taken)
		give_back(lock);
	lock->busy = BUSY_SUPERSEDED;
	lock->place.superseded_by = taking->queue.superseder;
	return end_with(taking, BUSY);
}

/* LOCK's name has come to mean another file once more.  Another process may move the name forever:
 * so after OFTEN moves, return BUSY with -n, or when the time of -w is up. */
static enum outcome after_moves(struct taking *taking)
{
	enum { OFTEN = 100 };
	const struct wait_options *wait = taking->wait;

	if (++taking->moves < OFTEN)
		return AGAIN;
	nap(MILLISECOND);
	if (!wait->try_once && deadline_left(&wait->deadline) > 0)
		return AGAIN;
	taking->lock->busy = busy_within(wait);
	return BUSY;
}

/* The taking has come to OUTCOME, other than TAKEN: release everything.  AGAIN: start over. */
static enum phase start_over_or_end(struct taking *taking, enum outcome outcome)
{
	lockset_release(taking->locks, taking->count);
	if (outcome == AGAIN)
		outcome = after_moves(taking);
	if (outcome == AGAIN)
		return PHASE_OPEN;
	/* --toggle looks for the holder, and ends it, while the lock is not open here */
	if (outcome == BUSY && taking->wait->preempt == PREEMPT_TOGGLE)
		return taking_ask(taking, STEP_HELD, PHASE_OPEN);
	return taking_ask(taking, outcome == BUSY ? STEP_BUSY : STEP_FAILED, PHASE_END);
}

/* ---- PHASE_OPEN ---- */

/* Open LOCK.  Another program may have a lease on its file (fcntl(2), Samba).  Then the open fails
 * with EWOULDBLOCK, but the kernel notifies the lease's holder, and breaks the lease after a while:
 * so try again until the time is up. */
static enum outcome open_in_time(struct lock *lock, const struct wait_options *wait,
    struct error *error)
{
	lock->slot = -1;
	lock->kernel.slots.count = 0;
	lock->end = (struct lock_end){0};
	while (lock->spec->method->open(lock, error) != 0) {
		if (error->errnum != EWOULDBLOCK)
			return FAILED;
		lock->busy = busy_within(wait);
		if (wait->try_once || deadline_left(&wait->deadline) == 0) {
			error->kind = ERROR_NONE; /* no reason: waiting longer might have helped */
			return BUSY;
		}
		nap(20 * MILLISECOND);
	}
	return TAKEN;
}

/* Several locks: open them all, and sort them into the order in which to take them. */
static enum outcome open_all(struct taking *taking, struct error *error)
{
	enum outcome outcome = TAKEN;
	struct lock *failed;

	if (taking->order == &taking->single)
		taking->order = memory_lasting(taking->count * sizeof(struct lock *));
	if (taking->order == NULL)
		return error_plain(error, ERROR_SYSTEM, "out of memory");

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
		return taking_ask(taking, STEP_WAITS, PHASE_ASK_SERVER);
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
	    /* admitted once: do not count this waiter again */
	    .places = lock->place.admitted ? 0 : wait->places,
	    .supersedes = wait->supersede,
	};
	taking->joined = false;
	taking->looks = 0;
	taking->sleepers = 0;

	queue_open(&taking->queue, lock);
	lock->place.queued = taking->queue.fd >= 0;
	if (lock->place.queued)
		return wait->try_once ? PHASE_TRY_PAST : PHASE_JOIN;
	outcome = wait->try_once ? attempt_once(lock, error) : attempt_try(lock, error);
	if (outcome == BUSY && !wait->try_once)
		return PHASE_JOIN;
	return end_with(taking, outcome);
}

/* With -n, and when the time is up: take LOCK if it is free at each check, because then it belongs
 * to no living queue.  Do not check if a caller's descriptor carries a lock already: it would lose
 * that lock. */
static enum outcome take_at_once(struct lock *lock, struct error *error)
{
	static const struct checks checks = {8, 7 * MILLISECOND, 10 * MILLISECOND, false};
	bool sleeper;

	if (held_read(lock).mode != HELD_NONE)
		return BUSY;
	return attempt_deserted(lock, &checks, NULL, &sleeper, error);
}

/* There is a queue, and we do not wait.  If only stopped processes are in it, just try.  Other
 * waiters may be frozen or hostile, or want other parts of the file: so take a deserted lock past
 * them. */
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
	return taking_ask(taking, STEP_WAITS, PHASE_CONVERT);
}

/* Draw the ticket first: everything that may take time, or that only a wait needs, comes after it.
 * A caller that skips the queue draws a ticket, too: then later waiters queue behind it, and a
 * writer gets in among readers. */
static enum phase taking_join(struct taking *taking)
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
		return PHASE_TRY_PAST; /* as with -n: a deserted lock can be taken */
	}
	/* decide this before a conversion drops a part of what is held */
	taking->skips = conversion_skips_queue(lock, wait);
	return tried ? begin_wait(taking) : PHASE_TRY_IN_TURN;
}

/* The first try, if there was a queue. */
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

/* Do we wait with our ticket, behind the earlier ones? */
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

/* Take a deserted lock: the tickets before ours may belong to processes that do not come although
 * they are not stopped, or to one that only wants to hold the others up.  But in a living queue of
 * short commands on a busy machine, the lock is also free most of the time, while the next waiter
 * wakes up.  So check many times, over a time long enough for a waiter to wake up. */
static enum outcome take_deserted(struct taking *taking, struct error *error)
{
	static const struct checks usual = {50, 22 * SECOND / 100, SECOND / 2, true};
	/* a replacer (--replace) leaves a lock free while it looks for the holder */
	static const struct checks behind_replacer = {50, 62 * SECOND / 100, SECOND / 2, true};
	struct queue *queue = &taking->queue;
	struct lock *lock = taking->lock;
	const struct checks *checks;
	enum outcome outcome = lock->spec->method->idle(lock, error);
	bool sleeper = false;
	int64_t pause;

	if (outcome == TAKEN) {
		checks = queue_led_from_front(queue) ? &behind_replacer : &usual;
		outcome = deadline_left(&taking->wait->deadline) <= checks->spell
		              ? BUSY
		              : attempt_deserted(lock, checks, queue, &sleeper, error);
	}
	if (outcome == NEEDS_CHILD)
		return NEEDS_CHILD; /* QUEUE->look_at has passed, so the next look comes at once */
	/* Each read of the list of all locks (/proc/locks) stops all locking on the machine.  So
	 * the pauses get longer while a process sleeps in front of the lock: for the second in
	 * line, they last 2 seconds, 4, 8, and 8 again. */
	taking->sleepers = sleeper ? taking->sleepers + 1 : 0;
	pause = queue_pause(queue);
	for (unsigned i = 0; i < taking->sleepers && i < 3 && pause < 8 * SECOND; i++)
		pause *= 2;
	queue->look_at = clock_now() + pause * 9 / 10 + attempt_jitter(pause / 10);
	return outcome;
}

static enum phase look_from_line(struct taking *taking, struct error *error)
{
	enum outcome outcome = take_deserted(taking, error);

	if (outcome != BUSY)
		return end_with(taking, outcome);
	taking->looks++;
	/* with --replace: those before us make no progress, so end the holder ourselves */
	if (taking->looks >= 2 && taking->wait->preempt == PREEMPT_REPLACE)
		return PHASE_HEAD;
	return PHASE_LINE;
}

static enum phase stand_in_line(struct taking *taking, struct error *error)
{
	switch (queue_await(&taking->queue, taking->lock, &taking->wait->deadline)) {
	case TURN_EXPIRED:
		return end_with(taking, take_at_once(taking->lock, error));
	case TURN_SUPERSEDED:
		return give_way(taking, false);
	case TURN_LOOK:
		return look_from_line(taking, error);
	case TURN_OURS:
		CRASH_POINT("lock.head");
		return PHASE_HEAD;
	case TURN_BROKEN:
		taking->joined = false;
		return PHASE_HEAD;
	}
	return PHASE_HEAD;
}

/* LOCK is busy.  If we collect slots (--take), we have dropped what we had.  Then pause, so that a
 * holder's child may take a slot, but too briefly for -n to find the lock deserted.  Returns
 * whether to go on; false, without a pause, if we collect nothing or the time is up. */
static bool collects_again(struct taking *taking)
{
	if (!slots_collects(taking->lock) || deadline_left(&taking->wait->deadline) == 0)
		return false;
	nap(3 * MILLISECOND / 2);
	taking->queue.look_at = clock_now() + SECOND;
	return true;
}

/* Try to take the lock, or sleep for TAKING->nap, as the caller asked.  Sleep in the kernel's queue
 * for the lock: otherwise the lock could be free while the caller searches for its holder, and a
 * waiter would find it deserted. */
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

static bool may_be_superseded(const struct taking *taking)
{
	return taking->joined && taking->queue.supersedes;
}

/* Until when does a waiter at the head sleep?  If it may be superseded, it wakes sooner to look for
 * a later waiter, and so loses its place among programs that do not queue. */
static struct deadline end_of_sleep(const struct taking *taking)
{
	if (!may_be_superseded(taking))
		return taking->wait->deadline;
	return deadline_earlier(taking->wait->deadline, deadline_after(QUEUE_SUPERSEDED_PAUSE));
}

/* Has a later waiter with --supersede come?  If the queue's file was removed, that waiter has its
 * ticket in the new one: so follow first. */
static bool is_superseded(struct taking *taking)
{
	if (!may_be_superseded(taking))
		return false;
	queue_follow(&taking->queue, taking->lock);
	return queue_superseded(&taking->queue);
}

static enum phase stand_at_head(struct taking *taking, struct error *error)
{
	const struct wait_options *wait = taking->wait;
	const struct deadline until = end_of_sleep(taking);
	struct lock *lock = taking->lock;
	enum outcome outcome;

	if (wait->preempt == PREEMPT_REPLACE)
		outcome = try_or_nap(taking, error);
	else
		outcome = attempt_sleep(lock, &until, error);

	if ((outcome == TAKEN || outcome == BUSY) && is_superseded(taking))
		return give_way(taking, outcome == TAKEN);
	if (outcome == TAKEN && is_in_line(taking) && yield_to_earlier(taking)) {
		taking->nap = 0;
		return PHASE_LINE;
	}
	if (outcome != BUSY)
		return end_with(taking, outcome);
	if (wait->preempt == PREEMPT_REPLACE) {
		if (lock->spec->method->current(lock))
			return taking_ask(taking, STEP_HELD, PHASE_HEAD);
		return end_with(taking, AGAIN);
	}
	if (collects_again(taking))
		return is_in_line(taking) ? PHASE_LINE : PHASE_HEAD;
	if (may_be_superseded(taking) && deadline_left(&wait->deadline) > 0)
		return PHASE_HEAD;
	return end_with(taking, BUSY);
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

	/* the lock's directory was removed, and there may be another by now */
	if (outcome == FAILED && method->family == OF_FILES && !method->current(lock))
		return AGAIN;
	if (outcome != TAKEN || method->family == ON_SERVER)
		return outcome;
	CRASH_POINT("lock.taken");
	if (method->current(lock)) /* step K3 of tests/models: the name still means LOCK */
		return TAKEN;
	/* unlock a caller's descriptor, because release() does not; the next open() says what is
	 * wrong with it */
	if (lock->spec->name == NULL)
		attempt_drop(lock);
	return AGAIN;
}

/* One of several locks is taken: go to the next that no other covers.  Returns BUSY if there is
 * one; TAKEN if none is left, and all are still ours; AGAIN if one is not. */
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
		return taking_ask(taking, STEP_TAKEN, PHASE_END);
	return start_over_or_end(taking, outcome);
}

/* ---- all phases ---- */

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
			taking->phase = taking_join(taking);
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
