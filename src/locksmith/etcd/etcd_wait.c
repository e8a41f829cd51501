/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "locksmith/common/loop.h"
#include "locksmith/etcd/etcd_key.h"
#include "locksmith/etcd/etcd_wait.h"

#define FIRST_ANSWER (10 * SECOND)
#define LATE_ANSWER (30 * SECOND)
#define TRIES_NO_WAIT 5
#define SHORT_LEASE (10 * SECOND)
/* a stopped endpoint's watch stays open and silent: send a keepalive at least this often to find
 * out, unless the server is slow */
#define MOST_SILENCE (10 * SECOND)

static struct {
	int64_t keep_at; /* when to renew the lease of our place */
	int64_t look_at; /* when to look for what a watch may have missed */
	int tries;       /* --no-wait: how often another client was faster */
} due;

static int64_t answer_by(const struct etcd_lock *lock)
{
	int64_t time = later(later(lock->ttl / 3, FIRST_ANSWER), lock->rpc.patience);

	return earlier(clock_boottime() + time, lock->options->answer_by);
}

/* Like answer_by(), but not beyond the end of our key's lease.  On a slow server the lease is long,
 * and leaves more time for a late answer. */
static int64_t answer_in_lease(const struct etcd_lock *lock)
{
	int64_t now = clock_boottime(), until = answer_by(lock);
	int64_t half = earlier((lock->lease.end - now) / 2, LATE_ANSWER);

	if (lock->lease.ttl > lock->ttl)
		until = later(until, now + half);
	return earlier(until, earlier(lock->lease.end, lock->options->answer_by));
}

/* Like answer_by(), while we have no key and no lease yet.  Leave the server more time: if we
 * repeated a request, the server would only have one more to answer before ours. */
static int64_t first_answer_by(const struct etcd_lock *lock)
{
	return earlier(later(answer_by(lock), clock_boottime() + LATE_ANSWER),
	    lock->options->answer_by);
}

/* Is there a watch, on the endpoint that calls go to?  A stopped endpoint's watch stays open and
 * silent.  But a stopped endpoint does not answer keepalives, either.  Then calls go to the next
 * endpoint, and the watch must follow. */
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

/* How long a waiter pauses after a missing answer, or after losing its connection or its place.
 * All waiters of a server may fail at once, so spread their tries.  The slower the server, the
 * wider the tries must spread. */
static int64_t pause_after_failure(const struct etcd_lock *lock)
{
	int64_t pause = SECOND / 5 + spread(lock->rpc.patience) / 4;
	int64_t left = lock->lease.end - clock_boottime();

	/* we may still have our place: renew it in time */
	return left > 0 ? earlier(pause, SECOND / 5 + left / 2) : pause;
}

/* How long to wait between two keepalives of a waiter's lease.  Not often: keepalives are most of
 * what a queue costs the server, and a waiter's machine.  But two thirds of a short lease could be
 * too late on a slow machine.  On a slow server the lease is long, and half of it leaves time for
 * many tries. */
static int64_t keep_after(const struct etcd_lock *lock)
{
	if (lock->lease.ttl > lock->ttl)
		return lock->lease.ttl / 2;
	return earlier(lock->ttl >= SHORT_LEASE ? lock->ttl * 2 / 3 : lock->ttl / 3, MOST_SILENCE);
}

/* Get a lease for our key.  With --no-wait, look first, and leave a busy lock without a trace;
 * join() then makes the key only if no other key was made since this look. */
static enum etcd_reply begin(struct etcd_lock *lock)
{
	bool no_wait = lock->options->no_wait;
	enum etcd_reply reply = no_wait ? etcd_key_look(lock, INT64_MAX, answer_by(lock)) : ETCD_OK;

	if (no_wait && reply == ETCD_OK && lock->place.blocked)
		return ETCD_BUSY;
	return reply == ETCD_OK ? etcd_key_grant(lock, first_answer_by(lock)) : reply;
}

/* For --queue-max: ETCD_BUSY if too many wait before us.  Our key has its place already, so the
 * count is exact even if many clients begin at the same time. */
static enum etcd_reply count_waiters(struct etcd_lock *lock, struct turn *turn)
{
	enum etcd_reply reply;
	struct protobuf keys;

	if (lock->options->queue_max == 0 || !lock->place.blocked)
		return ETCD_OK;
	reply = etcd_key_all(lock, answer_in_lease(lock), &keys);
	if (reply != ETCD_OK || etcd_queue_waiting(keys, lock->revision) < lock->options->queue_max)
		return reply;
	turn->last = true;
	return ETCD_BUSY;
}

/* Put our key.  If an earlier put, whose answer was lost, has made it, the key stays as it is. */
static enum etcd_reply join(struct etcd_lock *lock, struct turn *turn)
{
	bool made = false;
	enum etcd_reply reply = etcd_key_queue(lock, lock->options->no_wait ? lock->seen : -1,
	    answer_in_lease(lock), &made);

	if (reply != ETCD_OK || !made)
		return reply == ETCD_OK ? ETCD_GONE : reply;
	due.keep_at = lock->lease.end - lock->lease.ttl + keep_after(lock);
	due.look_at = clock_boottime() + 4 * keep_after(lock);
	reply = count_waiters(lock, turn);
	return reply == ETCD_OK && lock->place.blocked ? ETCD_BUSY : reply;
}

/* Renew the lease of our place.  If the lease has ended by our clock, the server or this machine is
 * busy, or was stopped.  But the server ends leases late, and none while it is stopped.  So we may
 * still have our place, and only the server's answer shows whether we do. */
static enum etcd_reply keep(struct etcd_lock *lock)
{
	bool late = clock_boottime() >= lock->lease.end;
	enum etcd_reply kept = etcd_key_keep(lock, late ? answer_by(lock) : answer_in_lease(lock));

	due.keep_at =
	    clock_boottime() + (kept == ETCD_OK ? keep_after(lock) : pause_after_failure(lock));
	return kept == ETCD_SILENT && !late ? ETCD_OK : kept;
}

/* Look at our place if it may have changed, and enter if nothing precedes our key.  If the watch
 * has reported that our predecessor's key is gone, no look is needed, because the transaction that
 * enters checks our place.  With slots one is needed, to find the number of a free slot. */
static enum etcd_reply advance(struct etcd_lock *lock, bool last)
{
	bool gone = lock->watch.deleted && lock->options->mode != LEASE_SLOTS;
	enum etcd_reply reply;

	if (!gone && lock->place.blocked) {
		if (watch_is_good(lock) && clock_boottime() < due.look_at && !last)
			return ETCD_BUSY;
		reply = etcd_key_look(lock, lock->revision, answer_in_lease(lock));
		if (reply != ETCD_OK)
			return reply;
		due.look_at = clock_boottime() + 4 * keep_after(lock);
		if (!lock->place.found || lock->place.blocked)
			return lock->place.found ? ETCD_BUSY : ETCD_GONE;
	}
	reply = etcd_key_enter(lock, answer_in_lease(lock));
	if (reply != ETCD_OK || lock->token != 0)
		return reply;
	return !lock->place.found ? ETCD_GONE : lock->place.blocked ? ETCD_BUSY : ETCD_AGAIN;
}

static enum etcd_reply do_what_is_due(struct etcd_lock *lock, struct turn *turn)
{
	enum etcd_reply reply = ETCD_OK;

	if (lock->token != 0)
		return ETCD_OK;
	if (lock->lease.id == 0)
		reply = begin(lock);
	else if (clock_boottime() >= earlier(due.keep_at, lock->lease.end))
		reply = keep(lock);
	if (reply != ETCD_OK)
		return reply;
	if (lock->revision == 0)
		reply = join(lock, turn);
	return reply == ETCD_OK && lock->token == 0 ? advance(lock, turn->last) : reply;
}

/* Start anew, because our place is lost, or, with --no-wait, because another client's key came
 * between our look and our key. */
static enum look start_over(struct etcd_lock *lock, struct turn *turn, struct error *error)
{
	etcd_watch_stop(&lock->watch);
	etcd_key_revoke(lock, answer_by(lock));
	if (turn->options->no_wait) {
		snprintf(turn->who, sizeof turn->who, "%s", lock->place.who);
		turn->at = 0;
		return ++due.tries == TRIES_NO_WAIT ? LOOK_BUSY : LOOK_AGAIN;
	}
	error_plain(error, ERROR_SLOW, "its place in the queue was lost");
	snprintf(turn->who, sizeof turn->who, "note=its place in the queue was lost");
	turn->at = clock_boottime() + pause_after_failure(lock);
	return LOOK_AGAIN;
}

enum look etcd_wait_look(struct etcd_lock *lock, struct turn *turn, struct error *error)
{
	enum etcd_reply reply = do_what_is_due(lock, turn);

	*error = lock->rpc.error;
	turn->at = clock_boottime() + pause_after_failure(lock);
	switch (reply) {
	case ETCD_OK:
		return LOOK_TAKEN;
	case ETCD_BUSY:
		error->kind = ERROR_NONE;
		snprintf(turn->who, sizeof turn->who, "%s", lock->place.who);
		if (!turn->last)
			watch_place(lock);
		turn->at = earlier(due.keep_at, due.look_at);
		return LOOK_BUSY;
	case ETCD_GONE:
		return start_over(lock, turn, error);
	case ETCD_AGAIN:
		error->kind = ERROR_NONE;
		turn->at = 0;
		return LOOK_AGAIN;
	case ETCD_FULL: /* the server has no room for our key, until an administrator makes some */
		if (lock->revision != 0) /* it is our turn: keep our place, and wait for room */
			error->kind = ERROR_SLOW;
		turn->at = clock_boottime() + spread(SECOND);
		return LOOK_FAILED;
	default: /* ETCD_SILENT, ETCD_FATAL */
		return LOOK_FAILED;
	}
}

void etcd_wait_rest(struct etcd_lock *lock, struct turn *turn, int64_t until)
{
	struct etcd_watch *watch = &lock->watch;

	transfer_wait(until, &watch->event, &watch->call.transfer.ended);
	if (watch->event && !watch->cancelled) {
		turn->at = 0;
	} else if (watch->event || watch->call.transfer.ended) {
		etcd_watch_stop(watch);
		etcd_rpc_rotate(&lock->rpc);
		turn->at = earlier(turn->at, clock_boottime() + pause_after_failure(lock));
	}
}
