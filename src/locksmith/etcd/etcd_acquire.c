/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/common/clock.h"
#include "locksmith/etcd/etcdlock.h"
#include "locksmith/common/protocol.h"

#include <string.h>

#define FIRST_ANSWER (10 * NS_PER_S)
#define TRIES_NO_WAIT 5
#define HALVED_LEASE (10 * NS_PER_S)
#define MOST_SILENCE (8 * NS_PER_S) /* a call finds an endpoint that was stopped, whose watch says nothing */

enum wait {
	WAIT_HELD,
	WAIT_BUSY,
	WAIT_SILENT, /* no endpoint answers; our place in the queue is unknown, or lost */
	WAIT_TAKEN,  /* a key is before ours, or another holder has taken that slot number */
	WAIT_AGAIN,  /* our place was lost: begin again */
	WAIT_FAILED
};

static int64_t answer_by(const struct etcdlock *k)
{
	int64_t usual = k->ttl / 3 > FIRST_ANSWER ? k->ttl / 3 : FIRST_ANSWER;

	return clock_min(clock_boottime() + usual, k->options->answer_by);
}

static enum wait place_verdict(const struct etcdlock *k)
{
	if (!k->place.found)
		return WAIT_AGAIN;
	return k->place.blocked ? WAIT_BUSY : WAIT_HELD;
}

static enum wait call_verdict(enum etcd_reply reply)
{
	switch (reply) {
	case ETCD_OK:
		return WAIT_HELD;
	case ETCD_SILENT:
		return WAIT_SILENT;
	case ETCD_FATAL:
		return WAIT_FAILED;
	default:
		return WAIT_AGAIN;
	}
}

static enum wait look_again(struct etcdlock *k)
{
	enum etcd_reply reply =
	    etcdlock_look(k, k->revision, clock_min(answer_by(k), k->deadline));

	if (reply == ETCD_OK)
		return place_verdict(k);
	if (reply == ETCD_SILENT)
		say_wait("note=no endpoint answers");
	return call_verdict(reply);
}

/* The watch of a stopped endpoint stays open and silent. But the endpoint answers no keepalive either:
   then the calls go to the next endpoint, and the watch follows. */
static bool watch_is_good(const struct etcdlock *k)
{
	return !etcdwatch_over(&k->watch) && k->watch.endpoint == k->etcd.current;
}

static void watch_place(struct etcdlock *k)
{
	if (!watch_is_good(k) || strcmp(k->watch.key, k->place.watch.first) != 0)
		etcdwatch_start(&k->watch, &k->etcd, &k->place.watch, k->place.puts, k->seen + 1);
}

/* Waits until that moment, until the watch has an event, or until a moment after the watch's end. */
static void doze(struct etcdlock *k, int64_t until)
{
	const struct etcdwatch *w = &k->watch;

	transfer_wait(until, &w->stirred, &w->call.transfer.ended);
	if (w->stirred ? !w->cancelled : !w->call.transfer.ended)
		return;
	etcdrpc_rotate(&k->etcd);
	transfer_wait(clock_min(clock_boottime() + NS_PER_S / 5, k->options->until), NULL, NULL);
}

/* Time between two keepalives of a waiter's lease: most of what a queue costs the server is keepalives. Half of a
   short lease could be too little for a slow machine. */
static int64_t keep_after(const struct etcdlock *k)
{
	return clock_min(k->ttl >= HALVED_LEASE ? k->ttl / 2 : k->ttl / 3, MOST_SILENCE);
}

/* Waits in the queue until no key is before ours. */
static enum wait wait_in_queue(struct etcdlock *k)
{
	int64_t keep_at = k->deadline - k->ttl + keep_after(k);
	int64_t look_at = clock_boottime() + 4 * keep_after(k); /* in case that a watch is lost silently */
	enum wait w = place_verdict(k);

	while ((w == WAIT_BUSY || w == WAIT_SILENT) && !protocol_released()) {
		enum etcd_reply reply;

		if (k->options->no_wait || clock_boottime() >= k->options->until)
			return w == WAIT_SILENT ? WAIT_FAILED : WAIT_BUSY;
		if (clock_boottime() >= k->deadline)
			return w == WAIT_SILENT ? w : WAIT_AGAIN;
		if (w == WAIT_BUSY)
			say_wait(k->place.who);
		watch_place(k);
		doze(k, clock_min(clock_min(keep_at, look_at), k->options->until));
		if (clock_boottime() >= keep_at) {
			reply = etcdlock_keep(k, clock_min(answer_by(k), k->deadline));
			if (reply == ETCD_GONE)
				return WAIT_AGAIN;
			keep_at = clock_boottime() + (reply == ETCD_OK ? keep_after(k) : NS_PER_S / 3);
		}
		/* The predecessor has gone. The transaction of enter also looks at the place; only a slot's number must be
		   looked up first. */
		if (k->watch.deleted && k->options->mode != LEASE_SLOTS)
			return WAIT_HELD;
		if (!watch_is_good(k) || clock_boottime() >= clock_min(look_at, k->options->until)) {
			w = look_again(k);
			look_at = clock_boottime() + 4 * keep_after(k);
		}
	}
	return w == WAIT_SILENT ? WAIT_BUSY : w;
}

/* No key is before ours, or the nearest one has gone: prolong the lease if half of it is over, and make the mark,
   without which the lock is not held. */
static enum wait enter(struct etcdlock *k)
{
	enum etcd_reply reply = ETCD_OK;

	if (k->deadline - clock_boottime() < k->ttl / 2)
		reply = etcdlock_keep(k, clock_min(answer_by(k), k->deadline));
	if (reply == ETCD_OK && k->mark_deadline - clock_boottime() < k->ttl / 3 * 2)
		reply = etcdmark_lease(k, clock_min(answer_by(k), k->deadline));
	if (reply == ETCD_OK)
		reply = etcdmark_enter(k, clock_min(answer_by(k), k->deadline));
	if (reply != ETCD_OK)
		return call_verdict(reply);
	return k->marked ? WAIT_HELD : WAIT_TAKEN;
}

/* Our key has its place: exact, also if many begin at the same time. */
static enum wait count_waiters(struct etcdlock *k)
{
	struct pb kvs, marks;
	enum etcd_reply reply;

	if (k->options->queue_max == 0 || !k->place.blocked)
		return WAIT_HELD;
	reply = etcdlock_range(k, clock_min(answer_by(k), k->deadline), &kvs, &marks);
	if (reply != ETCD_OK)
		return call_verdict(reply);
	return etcdqueue_waiting(kvs, marks, k->revision) < k->options->queue_max ? WAIT_HELD : WAIT_BUSY;
}

static enum wait take_turn(struct etcdlock *k)
{
	enum wait w = count_waiters(k);

	if (w != WAIT_HELD)
		return w;
	do {
		w = k->marked ? WAIT_HELD : wait_in_queue(k);
		if (w == WAIT_HELD && !k->marked)
			w = enter(k);
	} while (w == WAIT_TAKEN);
	return w;
}

/* The leases of our key and of our mark, in the time of one. */
static enum etcd_reply get_leases(struct etcdlock *k)
{
	enum etcd_reply reply;

	etcdmark_lease_start(k);
	reply = etcdlock_grant(k, answer_by(k));
	/* The same endpoint has answered: the other answer is near. */
	etcdmark_lease_take(k,
	    reply == ETCD_OK && k->etcd.sent == 1 ? clock_min(answer_by(k), clock_boottime() + NS_PER_S) : 0);
	return reply;
}

/* One who does not wait looks first, and makes the key only if the lock is free and no key was put since: busy
   leaves no trace.  A holder that came meanwhile and lost its key is known by its mark. */
static enum wait begin(struct etcdlock *k)
{
	bool no_wait = k->options->no_wait, made = false;
	enum etcd_reply reply = no_wait ? etcdlock_look(k, INT64_MAX, answer_by(k)) : ETCD_OK;

	if (no_wait && reply == ETCD_OK && k->place.blocked)
		return WAIT_BUSY;
	if (reply == ETCD_OK)
		reply = get_leases(k);
	if (reply == ETCD_OK)
		reply = etcdlock_queue(k, no_wait ? k->seen : -1, clock_min(answer_by(k), k->deadline), &made);
	if (reply == ETCD_OK && made)
		return take_turn(k);
	if (reply == ETCD_SILENT && !no_wait)
		say_wait("note=no endpoint answers");
	return reply == ETCD_OK ? WAIT_AGAIN : call_verdict(reply);
}

void etcd_leave(struct etcdlock *k, int64_t until)
{
	etcdwatch_stop(&k->watch);
	etcdlock_revoke(k, &k->mark_lease, until);
	etcdlock_revoke(k, &k->lease, until);
	k->mark_lease = 0;
	k->lease = 0;
	k->revision = 0;
	k->marked = false;
}

int etcd_acquire(struct etcdlock *k, struct failure *failure)
{
	int tries = 0;
	enum wait w;

	for (;;) {
		w = begin(k);
		k->held = w == WAIT_HELD;
		if (k->held)
			return EXIT_RELEASED;
		*failure = k->etcd.failure;
		if ((w != WAIT_AGAIN && (w != WAIT_SILENT || k->options->no_wait)) || protocol_released())
			break;
		if (k->options->no_wait ? ++tries == TRIES_NO_WAIT : clock_boottime() >= k->options->until)
			break;
		etcd_leave(k, answer_by(k));
		if (!k->options->no_wait)
			transfer_wait(clock_boottime() + NS_PER_S / 5, NULL, NULL);
	}
	if (w != WAIT_FAILED && protocol_released() && !k->options->no_wait)
		return EXIT_RELEASED;
	return w == WAIT_FAILED || w == WAIT_SILENT ? failure->status : EXIT_BUSY;
}
