/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/etcd/etcd_key.h"
#include "locksmith/etcd/etcd_wait.h"
#include "protocol/lease_schedule.h"

#define FIRST_ANSWER (10 * SECOND)
#define LATE_ANSWER (30 * SECOND)
#define TRIES_NO_WAIT 5
#define SHORT_LEASE (10 * SECOND)
/* the watch of a stopped endpoint stays silent: a call finds it */
#define MOST_SILENCE (10 * SECOND)

static int64_t answer_by(const struct etcd_lock *lock)
{
	int64_t time = later(later(lock->ttl / 3, FIRST_ANSWER), lock->rpc.patience);

	return earlier(clock_boottime() + time, lock->options->answer_by);
}

/* The same, but not beyond the end of our key's lease; that of a slow server is long, and leaves
 * time for a late answer. */
static int64_t answer_in_lease(const struct etcd_lock *lock)
{
	int64_t now = clock_boottime(), until = answer_by(lock);
	int64_t half = earlier((lock->lease.end - now) / 2, LATE_ANSWER);

	if (lock->lease.ttl > lock->ttl)
		until = later(until, now + half);
	return earlier(until, earlier(lock->lease.end, lock->options->answer_by));
}

/* There is no key yet, and no lease: a server that was reached may take its time, as each further
 * request is one more that it has to answer before ours. */
static int64_t first_answer_by(const struct etcd_lock *lock)
{
	return earlier(later(answer_by(lock), clock_boottime() + LATE_ANSWER),
	    lock->options->answer_by);
}

static enum etcd_reply place_reply(const struct etcd_lock *lock)
{
	return !lock->place.found ? ETCD_GONE : lock->place.blocked ? ETCD_BUSY : ETCD_OK;
}

/* ETCD_GONE: our place in the queue was lost. */
static enum etcd_reply look_again(struct etcd_lock *lock)
{
	enum etcd_reply reply = etcd_key_look(lock, lock->revision, answer_in_lease(lock));

	if (reply == ETCD_SILENT)
		say_wait("note=no endpoint answers");
	return reply == ETCD_OK ? place_reply(lock) : reply;
}

/* The watch of a stopped endpoint stays open and silent.  But the endpoint answers no keepalive
 * either: then the calls go to the next endpoint, and the watch follows. */
static bool watch_is_good(const struct etcd_lock *lock)
{
	return !etcd_watch_over(&lock->watch) && lock->watch.endpoint == lock->rpc.current;
}

static void watch_place(struct etcd_lock *lock)
{
	if (!watch_is_good(lock) || strcmp(lock->watch.key, lock->place.watch.first) != 0)
		etcd_watch_start(&lock->watch, &lock->rpc, &lock->place.watch, lock->place.puts,
		    lock->seen + 1);
}

/* The time after which a waiter asks again that has had no answer, or has lost its connection or
 * its place.  All waiters of a server may ask at once: they spread, the more, the slower it
 * answers. */
static int64_t pause_after_failure(const struct etcd_lock *lock)
{
	int64_t pause = SECOND / 5 + spread(lock->rpc.patience) / 4;
	int64_t left = lock->lease.end - clock_boottime();

	/* A place that we may have still is to be kept in time. */
	return left > 0 ? earlier(pause, SECOND / 5 + left / 2) : pause;
}

/* Wait until that moment, until the watch has an event, or until some time after the end of the
 * watch. */
static void wait_for_event(struct etcd_lock *lock, int64_t until)
{
	const struct etcd_watch *watch = &lock->watch;

	transfer_wait(until, &watch->event, &watch->call.transfer.ended);
	if (watch->event ? !watch->cancelled : !watch->call.transfer.ended)
		return;
	etcd_rpc_rotate(&lock->rpc);
	transfer_wait(earlier(clock_boottime() + pause_after_failure(lock), lock->options->until),
	    NULL, NULL);
}

/* Time between two keepalives of a waiter's lease: most of what a queue costs the server, and a
 * waiter's machine, is keepalives.  Two thirds of a short lease could be too much for a slow
 * machine.  That of a slow server is long, and leaves time for many tries. */
static int64_t keep_after(const struct etcd_lock *lock)
{
	if (lock->lease.ttl > lock->ttl)
		return lock->lease.ttl / 2;
	return earlier(lock->ttl >= SHORT_LEASE ? lock->ttl * 2 / 3 : lock->ttl / 3, MOST_SILENCE);
}

static bool may_wait_on(const struct etcd_lock *lock)
{
	return !lock->options->no_wait && !protocol_released() &&
	       clock_boottime() < lock->options->until;
}

/* The lease of our place is over by our clock: the server or this machine is busy, or was stopped.
 * The server may have the place still, as it ends leases late, and none while it stands still: only
 * its answer tells, and is waited for. */
static enum etcd_reply keep_late(struct etcd_lock *lock)
{
	enum etcd_reply kept = etcd_key_keep(lock, answer_by(lock));

	while (kept == ETCD_SILENT && may_wait_on(lock)) {
		say_wait("note=no endpoint answers");
		kept = etcd_key_keep(lock, answer_by(lock));
	}
	return kept;
}

/* After a call that was not answered: ETCD_OK if our lease lasts, or what became of it. */
static enum etcd_reply keep_if_late(struct etcd_lock *lock)
{
	return clock_boottime() < lock->lease.end ? ETCD_OK : keep_late(lock);
}

/* Wait in the queue until no key is before ours.  ETCD_BUSY: the time is up; ETCD_GONE: our place
 * was lost. */
static enum etcd_reply wait_in_queue(struct etcd_lock *lock)
{
	int64_t keep_at = lock->lease.end - lock->lease.ttl + keep_after(lock);
	/* finds what a watch has missed */
	int64_t look_at = clock_boottime() + 4 * keep_after(lock);
	enum etcd_reply reply = place_reply(lock);

	while ((reply == ETCD_BUSY || reply == ETCD_SILENT) && !protocol_released()) {
		if (lock->options->no_wait || clock_boottime() >= lock->options->until)
			return reply == ETCD_SILENT ? ETCD_FATAL : ETCD_BUSY;
		if (clock_boottime() >= lock->lease.end) {
			reply = keep_late(lock);
			if (reply != ETCD_OK)
				return reply;
			keep_at = clock_boottime() + keep_after(lock);
			reply = ETCD_BUSY;
		}
		if (reply == ETCD_BUSY)
			say_wait(lock->place.who);
		watch_place(lock);
		wait_for_event(lock, earlier(earlier(keep_at, look_at), lock->options->until));
		if (clock_boottime() >= keep_at) {
			enum etcd_reply kept = etcd_key_keep(lock, answer_in_lease(lock));

			if (kept == ETCD_GONE)
				return kept;
			keep_at = clock_boottime() +
			          (kept == ETCD_OK ? keep_after(lock) : pause_after_failure(lock));
		}
		/* The predecessor has gone.  The transaction that enters also looks at the place;
		 * only the number of a slot must be looked up first. */
		if (lock->watch.deleted && lock->options->mode != LEASE_SLOTS)
			return ETCD_OK;
		if (!watch_is_good(lock) ||
		    clock_boottime() >= earlier(look_at, lock->options->until)) {
			reply = look_again(lock);
			look_at = clock_boottime() + 4 * keep_after(lock);
		}
	}
	return reply == ETCD_SILENT ? ETCD_BUSY : reply;
}

/* Our key has its place: exact, also if many begin at the same time. */
static enum etcd_reply count_waiters(struct etcd_lock *lock)
{
	enum etcd_reply reply;
	struct protobuf keys;

	if (lock->options->queue_max == 0 || !lock->place.blocked)
		return ETCD_OK;
	reply = etcd_key_all(lock, answer_in_lease(lock), &keys);
	if (reply != ETCD_OK || etcd_queue_waiting(keys, lock->revision) < lock->options->queue_max)
		return reply;
	return ETCD_BUSY;
}

/* It is our turn, and the server has no room for it.  Wait until it may have some, as for a server
 * that is away, and keep the place meanwhile.  Returns ETCD_OK: try again; ETCD_FULL: the time is
 * up; ETCD_BUSY: semlock waits no more; or what became of the place. */
static enum etcd_reply wait_for_room(struct etcd_lock *lock)
{
	char text[sizeof lock->rpc.error.text + 32];
	enum etcd_reply kept;

	if (lock->options->no_wait || clock_boottime() >= lock->options->until)
		return ETCD_FULL;
	snprintf(text, sizeof text, "note=for the server: %s", lock->rpc.error.text);
	say_wait(text);
	transfer_wait(earlier(clock_boottime() + spread(SECOND), lock->options->until), NULL, NULL);
	if (protocol_released())
		return ETCD_BUSY;
	if (clock_boottime() >= lock->options->until)
		return ETCD_FULL;
	if (clock_boottime() < lock->lease.end - lock->lease.ttl + keep_after(lock))
		return ETCD_OK;
	kept = etcd_key_keep(lock, answer_in_lease(lock));
	return kept == ETCD_SILENT ? keep_if_late(lock) : kept;
}

static enum etcd_reply take_turn(struct etcd_lock *lock)
{
	enum etcd_reply reply = count_waiters(lock);

	while (reply == ETCD_OK && lock->token == 0) {
		reply = wait_in_queue(lock);
		if (reply != ETCD_OK)
			return reply;
		reply = etcd_key_enter(lock, answer_in_lease(lock));
		if (reply == ETCD_FULL)
			reply = wait_for_room(lock);
		else if (reply == ETCD_SILENT && may_wait_on(lock))
			reply = keep_if_late(lock);
	}
	return reply;
}

/* Put our key, again if no answer tells whether it is there: one that is there stays. */
static enum etcd_reply join_queue(struct etcd_lock *lock, bool *made)
{
	int64_t unless_newer = lock->options->no_wait ? lock->seen : -1;
	enum etcd_reply reply = etcd_key_queue(lock, unless_newer, answer_in_lease(lock), made);

	while (reply == ETCD_SILENT && may_wait_on(lock)) {
		say_wait("note=no endpoint answers");
		reply = keep_if_late(lock);
		if (reply == ETCD_OK)
			reply = etcd_key_queue(lock, unless_newer, answer_in_lease(lock), made);
	}
	return reply;
}

/* Our key is the holder's.  If the answer was so late that the command would have little time,
 * renew it first.  ETCD_GONE: its lease has ended. */
static enum etcd_reply refresh(struct etcd_lock *lock)
{
	enum etcd_reply reply = ETCD_OK;

	while ((reply == ETCD_OK || (reply == ETCD_SILENT && may_wait_on(lock))) &&
	       clock_boottime() >= lease_moment(lock->lease.end, lock->lease.ttl, LEASE_ENTER))
		reply = etcd_key_renew(lock, answer_by(lock));
	return reply;
}

/* With --no-wait: look first, and make the key only if the lock is free and no key was made since.
 * A busy lock is left without a trace. */
static enum etcd_reply begin(struct etcd_lock *lock)
{
	bool no_wait = lock->options->no_wait, made = false;
	enum etcd_reply reply = no_wait ? etcd_key_look(lock, INT64_MAX, answer_by(lock)) : ETCD_OK;

	if (no_wait && reply == ETCD_OK && lock->place.blocked)
		return ETCD_BUSY;
	if (reply == ETCD_OK)
		reply = etcd_key_grant(lock, first_answer_by(lock));
	if (reply == ETCD_OK)
		reply = join_queue(lock, &made);
	if (reply == ETCD_OK && made)
		reply = take_turn(lock);
	if (reply == ETCD_OK && lock->token != 0)
		return refresh(lock);
	if (reply == ETCD_SILENT && !no_wait)
		say_wait("note=no endpoint answers");
	return reply == ETCD_OK ? ETCD_GONE : reply;
}

/* The wait is over with REPLY, which is neither the lock nor its release. */
static enum engine_outcome without_lock(const struct etcd_lock *lock, enum etcd_reply reply,
    struct error *error)
{
	/* Our place is lost, and no answer has shown a key before it: the lock may be free. */
	if (reply == ETCD_GONE && !lock->options->no_wait && !lock->place.blocked) {
		if (error->kind == ERROR_NONE)
			error_plain(error, ERROR_UNAVAILABLE, "its place in the queue was lost");
		return ENGINE_FAILED;
	}
	return reply == ETCD_FATAL || reply == ETCD_FULL || reply == ETCD_SILENT ? ENGINE_FAILED
	                                                                         : ENGINE_BUSY;
}

enum engine_outcome etcd_wait(struct etcd_lock *lock, struct error *error)
{
	int tries = 0;
	enum etcd_reply reply;

	for (;;) {
		reply = begin(lock);
		if (reply == ETCD_OK && lock->token != 0)
			return ENGINE_TAKEN;
		*error = lock->rpc.error;
		if ((reply != ETCD_GONE && (reply != ETCD_SILENT || lock->options->no_wait)) ||
		    protocol_released())
			break;
		if (lock->options->no_wait ? ++tries == TRIES_NO_WAIT
					   : clock_boottime() >= lock->options->until)
			break;
		if (reply == ETCD_GONE && !lock->options->no_wait)
			say_wait("note=its place in the queue was lost");
		etcd_watch_stop(&lock->watch);
		etcd_key_revoke(lock, answer_by(lock));
		if (!lock->options->no_wait)
			transfer_wait(clock_boottime() + pause_after_failure(lock), NULL, NULL);
	}
	if (reply != ETCD_FATAL && protocol_released() && !lock->options->no_wait)
		return ENGINE_RELEASED;
	return without_lock(lock, reply, error);
}
