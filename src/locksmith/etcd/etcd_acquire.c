#include <config.h>

#include "locksmith/common/clock.h"
#include "locksmith/etcd/etcdlock.h"
#include "locksmith/etcd/etcdmark.h"
#include "locksmith/common/protocol.h"

#include <string.h>

#define FIRST_ANSWER (10 * NS_PER_S)
#define TRIES_NO_WAIT 5

enum wait { WAIT_HELD, WAIT_BUSY, WAIT_AGAIN, WAIT_FAILED };

static int64_t patience(const struct etcdlock *k)
{
	return clock_now() + (k->ttl / 3 > FIRST_ANSWER ? k->ttl / 3 : FIRST_ANSWER);
}

/* Our key is made, and no other had been made since we looked. But one may have come and gone in
   that time, and be cut off: its mark tells. */
static enum wait behind_nobody(struct etcdlock *k)
{
	if (etcdlock_look(k, k->revision, patience(k)) != ETCD_OK)
		return WAIT_FAILED;
	if (k->place.orphaned)
		etcdmark_condemn(k, patience(k));
	return k->place.found && !k->place.blocked ? WAIT_HELD : WAIT_BUSY;
}

/* Looks, and only if nobody is in the way, makes the key, if still nobody is. Busy leaves no trace.
 */
static enum wait at_once(struct etcdlock *k)
{
	for (int tries = 0; tries < TRIES_NO_WAIT; tries++) {
		enum etcd_reply reply;
		bool made = false;

		if (etcdlock_look(k, INT64_MAX, patience(k)) != ETCD_OK)
			return WAIT_FAILED;
		if (k->place.orphaned)
			etcdmark_condemn(k, patience(k)); /* for the next one */
		if (k->place.blocked)
			return WAIT_BUSY;
		if (k->lease == 0 && etcdlock_grant(k, patience(k)) != ETCD_OK)
			return WAIT_FAILED;
		reply = etcdlock_queue(k, k->seen, patience(k), &made);
		if (reply == ETCD_GONE)
			k->lease = 0; /* we were stopped for longer than it lasts */
		else if (reply != ETCD_OK)
			return WAIT_FAILED;
		if (made)
			return behind_nobody(k);
	}
	return WAIT_BUSY;
}

/* Watches what is in front of us: the nearest that blocks, or for slots all of them; or an orphan. */
static void watch(struct etcdlock *k)
{
	if (k->options->mode == MODE_SLOTS && !k->place.orphaned)
		etcdwatch_start(&k->watch, &k->etcd, k->first, k->end, k->seen + 1);
	else
		etcdwatch_start(&k->watch, &k->etcd, k->place.blocker, NULL, k->seen + 1);
}

/* In the queue, until it is our turn. AGAIN: our place was lost. */
static enum wait queue(struct etcdlock *k, int64_t give_up)
{
	int64_t keep_at = clock_now() + k->ttl / 3;

	while (!protocol_released()) {
		int64_t until = clock_min(patience(k), k->deadline);
		enum etcd_reply reply;
		bool last = clock_now() >= give_up;

		if (clock_now() >= k->deadline)
			return WAIT_AGAIN;
		reply = etcdlock_look(k, k->revision, until);
		if (reply == ETCD_FATAL)
			return WAIT_FAILED;
		if (reply == ETCD_OK && !k->place.found)
			return WAIT_AGAIN;
		if (reply == ETCD_OK && !k->place.blocked)
			return WAIT_HELD;
		if (last)
			return WAIT_BUSY;
		say_wait(reply == ETCD_OK ? k->place.who : "note=no endpoint answers");
		if (reply == ETCD_OK && k->place.orphaned)
			etcdmark_condemn(k, until);
		if (reply == ETCD_OK)
			watch(k);
		/* A member that is stopped leaves a watch silently open: look now and then. */
		transfer_wait(clock_min(clock_min(keep_at, give_up), clock_now() + k->ttl / 2),
		    &k->watch.stirred, &k->watch.transfer.ended);
		if (k->watch.transfer.ended && !k->watch.deleted) {
			etcdrpc_rotate(&k->etcd);
			transfer_wait(clock_min(clock_now() + NS_PER_S / 5, give_up), NULL, NULL);
		}
		if (clock_now() < keep_at)
			continue;
		reply = etcdlock_keep(k, clock_min(patience(k), k->deadline));
		if (reply == ETCD_GONE)
			return WAIT_AGAIN;
		keep_at = clock_now() + (reply == ETCD_OK ? k->ttl / 3 : NS_PER_S / 3);
	}
	return WAIT_BUSY;
}

static enum wait in_turn(struct etcdlock *k, int64_t give_up)
{
	enum etcd_reply reply = etcdlock_grant(k, patience(k));
	bool made;

	if (reply == ETCD_OK)
		reply = etcdlock_queue(k, -1, clock_min(patience(k), k->deadline), &made);
	if (reply == ETCD_OK)
		return made ? queue(k, give_up) : WAIT_AGAIN;
	if (reply == ETCD_FATAL)
		return WAIT_FAILED;
	say_wait("note=no endpoint answers");
	return clock_now() >= give_up ? WAIT_FAILED : WAIT_AGAIN;
}

/* It is our turn. The lease should have some life left; and nobody believes that we hold the lock
   before our mark says so. */
static enum wait enter(struct etcdlock *k)
{
	enum etcd_reply reply;

	if (k->deadline - clock_now() < k->ttl / 2 &&
	    etcdlock_keep(k, clock_min(patience(k), k->deadline)) != ETCD_OK)
		return WAIT_AGAIN;
	reply = etcdmark_enter(k, clock_min(patience(k), k->deadline));
	if (reply == ETCD_OK && k->marked)
		return WAIT_HELD;
	if (reply == ETCD_FATAL)
		return WAIT_FAILED;
	return reply == ETCD_OK && k->options->no_wait ? WAIT_BUSY : WAIT_AGAIN;
}

/* Whatever we have in the queue must not stay behind. */
static void leave(struct etcdlock *k)
{
	etcdlock_revoke(k, patience(k));
	/* The reply was lost: it may be there. Without our key it is not made any more. */
	if (k->mark[0] != '\0')
		etcdmark_remove(k, patience(k));
	k->mark[0] = '\0';
	k->lease = 0;
	k->revision = 0;
}

int etcd_acquire(struct etcdlock *k, struct why *why)
{
	int64_t give_up = k->options->wait == NEVER ? NEVER : clock_now() + k->options->wait;
	enum wait w;

	for (;;) {
		w = k->options->no_wait ? at_once(k) : in_turn(k, give_up);
		if (w == WAIT_HELD)
			w = enter(k);
		if (w == WAIT_HELD || w == WAIT_FAILED)
			break;
		leave(k);
		if (w == WAIT_BUSY || protocol_released() || clock_now() >= give_up ||
		    k->options->no_wait)
			break;
		transfer_wait(clock_now() + NS_PER_S / 5, NULL, NULL);
	}
	etcdwatch_stop(&k->watch);
	if (w == WAIT_HELD)
		return EXIT_RELEASED;
	*why = k->etcd.why;
	if (w == WAIT_FAILED)
		etcdlock_revoke(k, clock_now() + NS_PER_S);
	if (w == WAIT_FAILED)
		return why->status;
	return protocol_released() && !k->options->no_wait ? EXIT_RELEASED : EXIT_BUSY;
}
