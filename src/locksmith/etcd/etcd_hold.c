/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/common/clock.h"
#include "locksmith/etcd/etcdlock.h"
#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"

#include <inttypes.h>
#include <string.h>

#define PAUSE (NS_PER_S / 5)
#define LONG_LEASE (60 * NS_PER_S)

struct etcd_renewal {
	int64_t last_call; /* without a renewal by then the lock is lost */
	int64_t next;	   /* the next keepalive */
	int64_t watch_at;  /* no watch before: a short command needs none */
	int64_t pause;	   /* between two watches */
	bool refused;	   /* the last one was refused, and not only late */
};

static void etcd_renewed(struct etcdlock *k, struct etcd_renewal *h)
{
	h->last_call = k->deadline - k->ttl / 10;
	h->next = k->deadline - k->ttl + k->ttl / 3;
	if (!etcdwatch_over(&k->watch))
		h->pause = PAUSE;
}

/* Watches our own key from when it was last seen: a loss is noticed before the next renewal. */
static void watch_own(struct etcdlock *k, struct etcd_renewal *h)
{
	struct etcdqueue_span own = {.end = ""};

	etcdwatch_stop(&k->watch);
	if (clock_boottime() < h->watch_at)
		return;
	h->watch_at = clock_boottime() + PAUSE;
	strcpy(own.first, k->key);
	etcdwatch_start(&k->watch, &k->etcd, &own, false, k->seen + 1);
}

static int etcd_release(struct etcdlock *k, struct failure *failure)
{
	etcdwatch_stop(&k->watch);
	switch (etcdmark_release(k, clock_boottime() + k->ttl)) {
	case ETCD_OK:
		say("FREE");
		/* Leases without keys end by themselves, which costs the server less than a revoke. */
		if (k->ttl > LONG_LEASE) {
			etcdlock_revoke(k, &k->lease, clock_boottime() + k->ttl / 6);
			etcdlock_revoke(k, &k->mark_lease, clock_boottime() + k->ttl / 6);
		}
		return EXIT_RELEASED;
	case ETCD_GONE:
		failure_set(failure, EXIT_LOST, "the lease had ended before it was released");
		return EXIT_LOST;
	default:
		failure_set(failure, EXIT_UNAVAILABLE, "could not be released, and lapses by itself: %s",
		    k->etcd.failure.text);
		return EXIT_UNAVAILABLE;
	}
}

/* Prolongs the lease, and then puts the mark anew if our key is still there: a reply about a lease alone
   proves nothing (etcdlock.h). */
static enum etcd_reply keep_lease_and_mark(struct etcdlock *k, int64_t until)
{
	int64_t before = k->deadline;
	enum etcd_reply reply = etcdlock_keep(k, until);

	if (reply == ETCD_OK)
		reply = etcdmark_renew(k, until);
	if (reply != ETCD_OK)
		k->deadline = before;
	return reply;
}

/* Renews, or starts the watch, if that is due. EXIT_LOST, or EXIT_RELEASED to go on. */
static int act_on_due(struct etcdlock *k, struct etcd_renewal *h, struct failure *failure)
{
	enum etcd_reply reply;

	if (k->watch.deleted) {
		failure_set(failure, EXIT_LOST, "its key was deleted");
		return EXIT_LOST;
	}
	if (etcdwatch_over(&k->watch) || k->watch.endpoint != k->etcd.current) {
		if (k->watch.call.transfer.ended && k->watch.endpoint == k->etcd.current)
			etcdrpc_rotate(&k->etcd);
		if (k->watch.cancelled) { /* k->seen is compacted, and a renewal tells a later revision */
			h->next = 0;
			h->watch_at = clock_boottime() + h->pause;
			h->pause = clock_min(2 * h->pause, k->ttl / 3);
		}
		watch_own(k, h);
	}
	if (clock_boottime() < h->next)
		return EXIT_RELEASED;
	reply = keep_lease_and_mark(k, clock_min(h->last_call, clock_boottime() + k->ttl / 3));
	h->refused = reply == ETCD_FATAL;
	if (reply == ETCD_GONE) {
		failure_set(failure, EXIT_LOST, "its lease expired or was revoked");
		return EXIT_LOST;
	}
	if (reply == ETCD_OK) {
		etcd_renewed(k, h);
		say("HELD deadline=%" PRId64, k->deadline);
	} else {
		h->next = clock_boottime() + PAUSE;
	}
	return EXIT_RELEASED;
}

int etcd_hold(struct etcdlock *k, struct failure *failure)
{
	struct etcd_renewal h = {.watch_at = clock_boottime() + PAUSE, .pause = PAUSE};

	etcd_renewed(k, &h);
	if (h.next < h.watch_at)
		h.next = h.watch_at; /* half of the lease may have gone by in the queue: a short command needs no renewal */
	say_ok(k->mark_made, k->slot, k->ttl, k->deadline);
	etcdwatch_stop(&k->watch); /* that of our predecessor */
	if (!loop_wait_for_start(h.last_call) && !protocol_released()) {
		failure_set(failure, EXIT_LOST, "semlock stood still, and did not start the command in time");
		return EXIT_LOST;
	}
	k->etcd.abort = &k->watch.deleted;
	while (!protocol_released()) {
		int64_t until;

		if (act_on_due(k, &h, failure) == EXIT_LOST)
			return EXIT_LOST;
		if (clock_boottime() >= h.last_call) {
			failure_set(failure, EXIT_LOST, "%s",
			    h.refused ? k->etcd.failure.text : "no endpoint answered in time");
			return EXIT_LOST;
		}
		until = clock_min(h.next, h.last_call);
		if (etcdwatch_over(&k->watch))
			until = clock_min(until, h.watch_at);
		transfer_wait(until, &k->watch.stirred, &k->watch.call.transfer.ended);
	}
	k->etcd.abort = NULL;
	return etcd_release(k, failure);
}
