/* SPDX-License-Identifier: MIT */
/* With --no-wait: the age of a lock by the server's own clock. Only if the lock seems to be stale, watch
   its signs from one heartbeat to the next. */
#include <config.h>

#include "locksmith/common/loop.h"
#include "locksmith/ftp/dirlock.h"
#include "locksmith/common/protocol.h"

#include <stdio.h>

/* The server's grain is a second, at both ends. */
#define MARGIN_SECONDS 2

/* The server's clock may have been set, or its times be cached: a sign that changes between one
   heartbeat and the next has a living owner. */
static bool stand_still(struct dirlock *k, unsigned int ttl)
{
	static struct listing before;
	int64_t end = clock_boottime() + (int64_t)ttl * SECOND / 3 + SECOND;

	before = k->listing;
	say_wait(k->who); /* with WAIT, semlock -n goes on waiting for us */
	while (clock_boottime() < end) {
		loop_pause(earlier(end, clock_boottime() + k->options->interval));
		if (protocol_released()) /* semlock has ended: take nothing */
			return false;
		if (dirlock_look(k) != REPLY_DONE || k->listing.signs != before.signs)
			return false;
		for (size_t i = 0; i < k->listing.signs; i++)
			if (listing_find(&before, k->listing.sign[i].name) == NULL)
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

	if (k->listing.signs == 0)
		return false;
	/* Every heartbeat renames an entry, which sets the modification time of the directory. */
	if (r->ops->modified(r, k->lock, &beaten) != REPLY_DONE || dirlock_probe(k, &now) != REPLY_DONE)
		return false;
	for (size_t i = 0; i < k->listing.signs; i++)
		if (k->listing.sign[i].ttl > longest)
			longest = k->listing.sign[i].ttl;
	if (now - beaten <= (int64_t)longest + MARGIN_SECONDS || !stand_still(k, longest))
		return false;
	for (size_t i = 0; i < k->listing.signs; i++)
		broken = dirlock_break(k, &k->listing.sign[i], now - beaten) || broken;
	return broken;
}
