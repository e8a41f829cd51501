/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/common/loop.h"
#include "locksmith/ftp/dirlock.h"
#include "locksmith/common/protocol.h"
#include "locksmith/common/renewal.h"

#include <string.h>

#define RETRY (SECOND / 2)

struct dirlock_renewal {
	struct dirlock *k;
	struct renewal renewal;
	int64_t tried;	  /* when the heartbeat without a reply was first sent; 0: none */
	int64_t removing; /* when a removal of our sign was first sent to which no answer came; 0: none */
};

static void dirlock_renewed(struct dirlock_renewal *h, int64_t sent)
{
	h->k->sent = sent;
	h->renewal.deadline = sent + h->renewal.lease;
	h->tried = 0;
	h->k->remote_dir.until = lease_moment(h->renewal.deadline, h->renewal.lease, LEASE_LAST);
}

/* Renames the sign to its next number. */
static enum renewed beat(struct renewal *renewal, int64_t until, struct error *error)
{
	struct dirlock_renewal *h = renewal->lock;
	struct dirlock *k = h->k;
	struct remote_dir *r = &k->remote_dir;
	struct owner_sign next = k->mine;
	enum reply reply;

	(void)until; /* dirlock_renewed() has set it */
	next.beat++;
	next.pid = options_pid(k->options);
	sign_name(&next);
	/* The first request may have been done: waiters count from there. */
	if (h->tried == 0)
		h->tried = clock_boottime();
	reply = r->ops->rename(r, dirlock_path(k, k->mine.name), dirlock_path(k, next.name));
	if (reply != REPLY_DONE) {
		/* The reply was lost, the sign broken, or the request refused for once: look. */
		if (dirlock_look(k) != REPLY_DONE || listing_find(&k->listing, k->mine.name) != NULL)
			return RENEW_AGAIN;
		if (listing_find(&k->listing, next.name) == NULL) {
			error_plain(error, ERROR_LOST, "it was taken over by another");
			return RENEW_GONE;
		}
	}
	k->mine = next;
	dirlock_renewed(h, h->tried);
	return RENEWED;
}

/* Removes sign and directory. DONE, or REFUSED: the sign was broken before; UNKNOWN: try again. */
static enum reply let_go(struct dirlock_renewal *h)
{
	struct dirlock *k = h->k;
	struct remote_dir *r = &k->remote_dir;
	int64_t now = clock_boottime();
	enum reply reply = r->ops->rmdir(r, dirlock_path(k, k->mine.name));

	if (reply == REPLY_UNKNOWN || reply == REPLY_FATAL) {
		if (h->removing == 0)
			h->removing = now;
		return REPLY_UNKNOWN;
	}
	if (reply == REPLY_REFUSED) {
		reply = dirlock_look(k);
		if (reply == REPLY_UNKNOWN || reply == REPLY_FATAL ||
		    listing_find(&k->listing, k->mine.name) != NULL)
			return REPLY_UNKNOWN;
		/* A heartbeat whose reply was lost may have renamed the sign. */
		k->mine.beat++;
		k->mine.pid = options_pid(k->options);
		sign_name(&k->mine);
		if (listing_find(&k->listing, k->mine.name) != NULL)
			return REPLY_UNKNOWN;
		now = clock_boottime();
		if (h->removing == 0 || now >= h->renewal.deadline)
			return REPLY_REFUSED;
		/* Our sign is removed, and another client may have removed the directory since. */
		if (dirlock_may_be_removed(k, h->removing, now))
			return REPLY_DONE;
	}
	/* Only once: a second request could remove the directory of a plain client that came after us. */
	r->ops->rmdir(r, k->lock);
	return REPLY_DONE;
}

static enum engine_outcome dirlock_release(struct dirlock_renewal *h)
{
	int64_t give_up = clock_boottime() + h->renewal.lease;
	struct dirlock *k = h->k;

	k->remote_dir.until = NEVER;
	do {
		switch (let_go(h)) {
		case REPLY_DONE:
			say(SAYS_FREE);
			return RELEASED;
		case REPLY_REFUSED:
			error_plain(&k->error, ERROR_LOST, "it had been taken over before it was released");
			return FAILED;
		default:
			break;
		}
		loop_pause(clock_boottime() + RETRY);
	} while (clock_boottime() < give_up);
	error_plain(&k->error, ERROR_UNAVAILABLE, "could not be released, and lapses by itself: %s",
	    k->remote_dir.error.text);
	return FAILED;
}

enum engine_outcome dirlock_hold(struct dirlock *k)
{
	struct dirlock_renewal h = {.k = k, .renewal = {.lease = (int64_t)k->ttl * SECOND, .at = LEASE_BEAT, .retry = RETRY,
							.renew = beat}};

	h.renewal.lock = &h;
	dirlock_renewed(&h, k->sent);
	return renewal_hold(&h.renewal, -1, -1, &k->error) == 0 ? dirlock_release(&h) : FAILED;
}
