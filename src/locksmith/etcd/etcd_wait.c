/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/etcd/etcd_key.h"
#include "locksmith/etcd/etcd_wait.h"

#define FIRST_ANSWER (10 * SECOND)
#define TRIES_NO_WAIT 5
#define SHORT_LEASE (10 * SECOND)
/* the watch of a stopped endpoint stays silent: a call finds it */
#define MOST_SILENCE (10 * SECOND)

static int64_t answer_by(const struct etcd_lock *lock)
{
	int64_t usual = lock->ttl / 3 > FIRST_ANSWER ? lock->ttl / 3 : FIRST_ANSWER;

	return earlier(clock_boottime() + usual, lock->options->answer_by);
}

/* The same, but not beyond the end of our key's lease. */
static int64_t answer_in_lease(const struct etcd_lock *lock)
{
	return earlier(answer_by(lock), lock->lease.end);
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

/* Wait until that moment, until the watch has an event, or until 200 ms after the end of the
 * watch. */
static void wait_for_event(struct etcd_lock *lock, int64_t until)
{
	const struct etcd_watch *watch = &lock->watch;

	transfer_wait(until, &watch->event, &watch->call.transfer.ended);
	if (watch->event ? !watch->cancelled : !watch->call.transfer.ended)
		return;
	etcd_rpc_rotate(&lock->rpc);
	transfer_wait(earlier(clock_boottime() + SECOND / 5, lock->options->until), NULL, NULL);
}

/* Time between two keepalives of a waiter's lease: most of what a queue costs the server, and a
 * waiter's machine, is keepalives.  Two thirds of a short lease could be too much for a slow
 * machine. */
static int64_t keep_after(const struct etcd_lock *lock)
{
	return earlier(lock->ttl >= SHORT_LEASE ? lock->ttl * 2 / 3 : lock->ttl / 3, MOST_SILENCE);
}

/* The lease of our place is over by our clock: this machine is busy, or was stopped.  The server
 * may have the place still, as it ends leases a little late. */
static enum etcd_reply keep_late(struct etcd_lock *lock)
{
	return etcd_key_keep(lock, answer_by(lock));
}

/* Wait in the queue until no key is before ours.  ETCD_BUSY: the time is up; ETCD_GONE: our place
 * was lost. */
static enum etcd_reply wait_in_queue(struct etcd_lock *lock)
{
	int64_t keep_at = lock->lease.end - lock->ttl + keep_after(lock);
	/* finds what a watch has missed */
	int64_t look_at = clock_boottime() + 4 * keep_after(lock);
	enum etcd_reply reply = place_reply(lock);

	while ((reply == ETCD_BUSY || reply == ETCD_SILENT) && !protocol_released()) {
		if (lock->options->no_wait || clock_boottime() >= lock->options->until)
			return reply == ETCD_SILENT ? ETCD_FATAL : ETCD_BUSY;
		if (clock_boottime() >= lock->lease.end) {
			enum etcd_reply kept = keep_late(lock);

			if (kept != ETCD_OK)
				return kept;
			keep_at = clock_boottime() + keep_after(lock);
		}
		if (reply == ETCD_BUSY)
			say_wait(lock->place.who);
		watch_place(lock);
		wait_for_event(lock, earlier(earlier(keep_at, look_at), lock->options->until));
		if (clock_boottime() >= keep_at) {
			enum etcd_reply kept = etcd_key_keep(lock, answer_in_lease(lock));

			if (kept == ETCD_GONE)
				return kept;
			keep_at =
			    clock_boottime() + (kept == ETCD_OK ? keep_after(lock) : SECOND / 3);
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

static bool may_wait_on(const struct etcd_lock *lock)
{
	return !lock->options->no_wait && !protocol_released() &&
	       clock_boottime() < lock->options->until;
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
	if (clock_boottime() < lock->lease.end - lock->ttl + keep_after(lock))
		return ETCD_OK;
	kept = etcd_key_keep(lock, answer_in_lease(lock));
	if (kept == ETCD_SILENT)
		return clock_boottime() < lock->lease.end ? ETCD_OK : ETCD_GONE;
	return kept;
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
			reply = clock_boottime() < lock->lease.end ? ETCD_OK : keep_late(lock);
	}
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
		reply = etcd_key_grant(lock, answer_by(lock));
	if (reply == ETCD_OK)
		reply =
		    etcd_key_queue(lock, no_wait ? lock->seen : -1, answer_in_lease(lock), &made);
	if (reply == ETCD_OK && made)
		return take_turn(lock);
	if (reply == ETCD_SILENT && !no_wait)
		say_wait("note=no endpoint answers");
	return reply == ETCD_OK ? ETCD_GONE : reply;
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
		etcd_watch_stop(&lock->watch);
		etcd_key_revoke(lock, answer_by(lock));
		if (!lock->options->no_wait)
			transfer_wait(clock_boottime() + SECOND / 5, NULL, NULL);
	}
	if (reply != ETCD_FATAL && protocol_released() && !lock->options->no_wait)
		return ENGINE_RELEASED;
	return reply == ETCD_FATAL || reply == ETCD_FULL || reply == ETCD_SILENT ? ENGINE_FAILED
	                                                                         : ENGINE_BUSY;
}
