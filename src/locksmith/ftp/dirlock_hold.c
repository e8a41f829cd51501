#include <config.h>

#include "locksmith/common/clock.h"
#include "locksmith/common/loop.h"
#include "locksmith/ftp/dirlock.h"
#include "locksmith/common/protocol.h"

#include <string.h>

#define RETRY (NS_PER_S / 2)

struct dirlock_renewal {
	int64_t ttl;
	int64_t deadline;  /* no other client may break our token before */
	int64_t last_call; /* without a renewal by then the lock is lost */
	int64_t next;	   /* the next heartbeat */
	int64_t tried;	   /* when the heartbeat without a reply was first sent; 0: none */
	int64_t removing;  /* when a removal of our token was first sent to which no answer came; 0: none */
};

static void dirlock_renewed(struct dirlock *k, struct dirlock_renewal *h, int64_t sent)
{
	k->sent = sent;
	h->deadline = sent + h->ttl;
	h->last_call = h->deadline - h->ttl / 10;
	/* On a slow connection there must be time for a retry before the lease ends. */
	h->next = sent + h->ttl / 4;
	h->tried = 0;
	k->remote_dir.until = h->last_call;
}

/* Renames the token to its next number. DONE: renewed; REFUSED: the token is gone; UNKNOWN: try again. */
static enum reply beat(struct dirlock *k, struct dirlock_renewal *h)
{
	struct remote_dir *r = &k->remote_dir;
	struct owner_token next = k->mine;
	enum reply reply;

	next.beat++;
	next.pid = options_pid(k->options);
	token_name(&next);
	/* The first request may have been done: waiters count from there. */
	if (h->tried == 0)
		h->tried = clock_boottime();
	reply = r->ops->rename(r, dirlock_path(k, k->mine.name), dirlock_path(k, next.name));
	if (reply != REPLY_DONE) {
		/* The reply was lost, the token broken, or the request refused for once: look. */
		if (dirlock_look(k) != REPLY_DONE)
			return REPLY_UNKNOWN;
		if (listing_find(&k->listing, k->mine.name) != NULL)
			return REPLY_UNKNOWN;
		if (listing_find(&k->listing, next.name) == NULL)
			return REPLY_REFUSED;
	}
	k->mine = next;
	dirlock_renewed(k, h, h->tried);
	return REPLY_DONE;
}

/* Removes token and directory. DONE, or REFUSED: the token was broken before; UNKNOWN: try again. */
static enum reply let_go(struct dirlock *k, struct dirlock_renewal *h)
{
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
		/* A heartbeat whose reply was lost may have renamed the token. */
		k->mine.beat++;
		k->mine.pid = options_pid(k->options);
		token_name(&k->mine);
		if (listing_find(&k->listing, k->mine.name) != NULL)
			return REPLY_UNKNOWN;
		now = clock_boottime();
		if (h->removing == 0 || now >= h->deadline)
			return REPLY_REFUSED;
		/* Our token is removed, and another client may have removed the directory since. */
		if (dirlock_may_be_removed(k, h->removing, now))
			return REPLY_DONE;
	}
	/* Only once: a second request could remove the directory of a plain client that came after us. */
	r->ops->rmdir(r, k->lock);
	return REPLY_DONE;
}

static int dirlock_release(struct dirlock *k, struct dirlock_renewal *h)
{
	int64_t give_up = clock_boottime() + h->ttl;

	k->remote_dir.until = NEVER;
	do {
		switch (let_go(k, h)) {
		case REPLY_DONE:
			say("FREE");
			return EXIT_RELEASED;
		case REPLY_REFUSED:
			failure_set(&k->failure, EXIT_LOST, "it had been taken over before it was released");
			return EXIT_LOST;
		default:
			break;
		}
		loop_pause(clock_boottime() + RETRY);
	} while (clock_boottime() < give_up);
	failure_set(&k->failure, EXIT_UNAVAILABLE, "could not be released, and lapses by itself: %s",
	    k->remote_dir.failure.text);
	return EXIT_UNAVAILABLE;
}

int dirlock_hold(struct dirlock *k)
{
	struct dirlock_renewal h = {.ttl = (int64_t)k->ttl * NS_PER_S};

	dirlock_renewed(k, &h, k->sent);
	say_ok(-1, -1, h.ttl, h.deadline);
	if (!loop_wait_for_start(h.last_call) && !protocol_released()) {
		failure_set(&k->failure, EXIT_LOST, NOT_STARTED);
		return EXIT_LOST;
	}
	for (;;) {
		loop_wait(clock_min(h.next, h.last_call));
		if (protocol_released())
			return dirlock_release(k, &h);
		if (clock_boottime() >= h.last_call) {
			failure_set(&k->failure, EXIT_LOST, "the server did not answer in time");
			return EXIT_LOST;
		}
		if (clock_boottime() < h.next)
			continue;
		switch (beat(k, &h)) {
		case REPLY_DONE:
			say("HELD deadline=%lld", (long long)h.deadline);
			break;
		case REPLY_REFUSED:
			failure_set(&k->failure, EXIT_LOST, "it was taken over by another");
			return EXIT_LOST;
		default:
			h.next = clock_boottime() + RETRY;
			break;
		}
	}
}
