/* The age of a lock by the server's own clock, for one who will not wait long enough to watch it; he
   waits no longer than from one beat to the next, and that only if it seems to be old. */
#include <config.h>

#include "locksmith/common/clock.h"
#include "locksmith/ftp/dirlock.h"
#include "locksmith/common/watchdog.h"
#include "locksmith/common/protocol.h"

#include <stdio.h>

/* The server's grain is a second, at both ends. */
#define MARGIN_SECONDS 2

static enum reply server_now(struct dirlock *k, int64_t *seconds)
{
	struct remote_dir *r = &k->remote_dir;
	struct owner_token probe;
	const char *path;
	enum reply reply;

	/* A directory made this moment carries the server's time. No dot before it: some hide
	 * those. */
	token_make(&probe, 'x', 0, k->ttl, k->options->pid);
	path = dirlock_beside(k, "sl-probe-", probe.nonce);
	reply = r->ops->mkdir(r, path, dirlock_answer_by());
	if (reply != REPLY_DONE)
		return reply;
	reply = r->ops->modified(r, path, dirlock_answer_by(), seconds);
	r->ops->rmdir(r, path, dirlock_answer_by());
	return reply;
}

/* The server's clock may have been set, or its times be a cache's. Nothing is taken from an owner
   whose token changes while we look, for longer than from one beat to the next. */
static bool stand_still(struct dirlock *k, unsigned int ttl)
{
	static struct listing before;
	int64_t end = boottime_now() + (int64_t)ttl * NS_PER_S / 3 + NS_PER_S;

	before = k->listing;
	say_wait(k->who); /* semlock -n is to stay */
	while (boottime_now() < end) {
		transfer_pause(clock_min(end, boottime_now() + k->options->interval));
		if (watchdog_core_gone()) /* who wanted it, wants it no longer */
			return false;
		if (dirlock_look(k, dirlock_answer_by()) != REPLY_DONE ||
		    k->listing.tokens != before.tokens)
			return false;
		for (size_t i = 0; i < k->listing.tokens; i++)
			if (listing_find(&before, k->listing.token[i].name) == NULL)
				return false;
	}
	return true;
}

bool dirlock_break_by_age(struct dirlock *k)
{
	struct remote_dir *r = &k->remote_dir;
	int64_t beaten, now;
	unsigned int longest = 0;
	bool broken = false;

	if (k->listing.tokens == 0)
		return false;
	/* Every beat is a rename in the directory, and so its modification. */
	if (r->ops->modified(r, k->lock, dirlock_answer_by(), &beaten) != REPLY_DONE ||
	    server_now(k, &now) != REPLY_DONE)
		return false;
	for (size_t i = 0; i < k->listing.tokens; i++)
		if (k->listing.token[i].ttl > longest)
			longest = k->listing.token[i].ttl;
	if (now - beaten <= (int64_t)longest + MARGIN_SECONDS || !stand_still(k, longest))
		return false;
	for (size_t i = 0; i < k->listing.tokens; i++) {
		const struct owner_token *t = &k->listing.token[i];

		if (r->ops->rmdir(r, dirlock_path(k, t->name), dirlock_answer_by()) != REPLY_DONE)
			continue;
		say("NOTE taken over from %ld on %s, silent for %lld s",
		    t->pid, t->host, (long long)(now - beaten));
		broken = true;
	}
	if (broken)
		r->ops->rmdir(r, k->lock, dirlock_answer_by());
	return broken;
}
