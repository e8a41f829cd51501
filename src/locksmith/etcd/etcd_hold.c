/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/common/moment.h"
#include "locksmith/etcd/etcd_lock.h"
#include "locksmith/common/protocol.h"
#include "locksmith/common/renewal.h"

#include <string.h>

#define PAUSE (SECOND / 5)
#define LONG_LEASE (60 * SECOND)

struct etcd_holding {
	struct etcd_lock *lock;
	int64_t short_until; /* a short command needs no renewal, though half of the lease may be over, */
	int64_t watch_at;    /* and no watch; later, when the next watch may begin */
	int64_t pause;	     /* between two watches: longer after each that was dropped soon */
	struct error refusal; /* of a renewal, since the last that was done */
};

/* Watches our own key from when it was last seen: a loss is noticed before the next renewal. */
static void watch_own(struct etcd_holding *holding)
{
	struct etcd_lock *lock = holding->lock;
	struct etcd_span own = {.end = ""};

	holding->watch_at = clock_boottime() + holding->pause;
	strcpy(own.first, lock->key);
	etcd_watch_start(&lock->watch, &lock->rpc, &own, false, lock->seen + 1);
}

static enum renewed renew(struct renewal *renewal, int64_t until, struct error *error)
{
	struct etcd_holding *holding = renewal->lock;
	struct etcd_lock *lock = holding->lock;
	int64_t now = clock_boottime();

	if (now < holding->short_until)
		return RENEW_AGAIN;
	switch (etcd_lock_renew(lock, earlier(until, now + lock->ttl / 3))) {
	case ETCD_OK:
		renewal->lease = lock->ttl;
		renewal->deadline = lock->lease.end;
		holding->refusal.text[0] = '\0';
		return RENEWED;
	case ETCD_GONE:
		error_plain(error, ERROR_LOST, "its lease expired or was revoked");
		return RENEW_GONE;
	case ETCD_FATAL:
		holding->refusal = lock->rpc.error;
		break;
	default:
		break;
	}
	*error = holding->refusal;
	if (error->text[0] == '\0')
		error_plain(error, ERROR_LOST, "no endpoint answered in time");
	return RENEW_AGAIN;
}

/* The server has dropped the watch, mostly because lock->seen is compacted: look at the key, for a later revision. */
static void see_later(struct etcd_holding *holding)
{
	struct etcd_lock *lock = holding->lock;

	if (etcd_lock_look(lock, lock->revision, clock_boottime() + lock->ttl / 6) == ETCD_OK && !lock->place.found)
		lock->watch.deleted = true;
}

static int rest(struct renewal *renewal, int64_t until, struct error *error)
{
	struct etcd_holding *holding = renewal->lock;
	struct etcd_lock *lock = holding->lock;
	struct etcd_watch *watch = &lock->watch;

	if (!watch->deleted && (etcd_watch_over(watch) || watch->endpoint != lock->rpc.current)) {
		bool cancelled = watch->cancelled;
		int64_t now = clock_boottime();

		if (cancelled && now < holding->watch_at + lock->ttl / 3)
			holding->watch_at = now + (holding->pause = earlier(2 * holding->pause, lock->ttl / 3));
		else if (watch->stirred || watch->call.transfer.ended)
			holding->pause = PAUSE;
		if (watch->call.transfer.ended && watch->endpoint == lock->rpc.current)
			etcd_rpc_rotate(&lock->rpc);
		etcd_watch_stop(watch);
		if (cancelled)
			see_later(holding);
		if (clock_boottime() >= holding->watch_at && !watch->deleted)
			watch_own(holding);
		else
			until = earlier(until, holding->watch_at);
	}
	if (!watch->deleted)
		transfer_wait(until, &watch->stirred, &watch->call.transfer.ended);
	return watch->deleted ? error_plain(error, ERROR_LOST, "its key was deleted") : 0;
}

static enum engine_outcome etcd_release(struct etcd_lock *lock, struct error *error)
{
	etcd_watch_stop(&lock->watch);
	switch (etcd_lock_release(lock, clock_boottime() + lock->ttl)) {
	case ETCD_OK:
		say(SAYS_FREE);
		/* A lease without keys ends by itself, which costs the server less than a revoke at the end. */
		if (lock->ttl <= LONG_LEASE)
			lock->lease.id = lock->next.id = 0;
		return RELEASED;
	case ETCD_GONE:
		error_plain(error, ERROR_LOST, "the lease had ended before it was released");
		return FAILED;
	default:
		error_plain(error, ERROR_UNAVAILABLE, "could not be released, and lapses by itself: %s",
		    lock->rpc.error.text);
		return FAILED;
	}
}

enum engine_outcome etcd_hold(struct etcd_lock *lock, struct error *error)
{
	int64_t begin = clock_boottime() + PAUSE;
	struct etcd_holding holding = {.lock = lock, .short_until = begin, .watch_at = begin, .pause = PAUSE};
	struct renewal renewal = {.lock = &holding, .lease = lock->ttl, .deadline = lock->lease.end, .at = LEASE_RENEW,
	    .retry = PAUSE, .renew = renew, .rest = rest};
	int held;

	etcd_watch_stop(&lock->watch); /* that of our predecessor */
	lock->rpc.abort = &lock->watch.deleted;
	held = renewal_hold(&renewal, lock->token, lock->slot, error);
	lock->rpc.abort = NULL;
	if (held == 0 && lock->watch.deleted)
		held = error_plain(error, ERROR_LOST, "its key was deleted");
	return held == 0 ? etcd_release(lock, error) : FAILED;
}
