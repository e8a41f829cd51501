/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/common/loop.h"
#include "locksmith/ftp/dirlock.h"
#include "locksmith/common/protocol.h"
#include "sys/lease_schedule.h"

#include <stdio.h>
#include <string.h>

#define MISSES_BEFORE_DOUBT 3
#define MISSES_MOST 30
#define COLLISIONS_MOST 20 /* with --no-wait */
#define BREAKS_UNKNOWN_MOST 3

enum step {
	STEP_HELD,
	STEP_AGAIN,   /* at once */
	STEP_BACK,    /* again after a short random pause: two clients have met */
	STEP_WAIT,    /* another client holds the lock */
	STEP_UNKNOWN, /* no answer */
	STEP_FAILED   /* remote_dir.error is filled */
};

static enum step no_answer(enum reply reply)
{
	return reply == REPLY_FATAL ? STEP_FAILED : STEP_UNKNOWN;
}

/* A1, making the directory, was refused, and the lock is not there. Most often it was released in between; if another
 * name is refused as well, the directory above cannot be written. */
static enum step lock_missed(struct dirlock *k, const char *refusal)
{
	struct remote_dir *r = &k->remote_dir;
	enum reply reply;

	if (++k->misses < MISSES_BEFORE_DOUBT)
		return STEP_AGAIN;
	reply = dirlock_probe(k, NULL);
	if (reply == REPLY_DONE && k->misses < MISSES_MOST)
		return STEP_BACK;
	if (reply != REPLY_DONE && reply != REPLY_REFUSED)
		return no_answer(reply);
	reply = r->ops->enter(r, k->parent);
	error_plain(&r->error, ERROR_CREATE, "cannot create: %s (the directory above it is %s)",
	    refusal, reply == REPLY_DONE ? "there" : "missing, or closed to us");
	return STEP_FAILED;
}

struct entry_search {
	const char *name;
	bool found;
};

static void compare_name(void *data, const char *name)
{
	struct entry_search *s = data;

	s->found = s->found || strcmp(s->name, name) == 0;
}

/* The lock directory has no signs in it, or could not be listed: is it there at all? */
static enum step absent_or_bare(struct dirlock *k, enum reply looked, const char *refusal)
{
	struct remote_dir *r = &k->remote_dir;
	enum reply reply = r->ops->enter(r, k->lock);

	if (reply == REPLY_DONE) {
		k->misses = 0;
		snprintf(k->who, sizeof k->who, "mode=exclusive note=a directory %s",
		    looked == REPLY_DONE ? "without a sign of its holder" : "that we cannot look into");
		return STEP_WAIT;
	}
	listing_clear(&k->seen);
	if (reply != REPLY_REFUSED)
		return no_answer(reply);

	struct entry_search s = {k->base, false};

	reply = r->ops->list(r, k->parent, compare_name, &s);
	if (reply == REPLY_DONE && s.found && k->misses < MISSES_MOST) {
		/* A file, or a directory made a moment ago. Count a miss: a file must not block us
		 * for ever. */
		k->misses++;
		snprintf(k->who, sizeof k->who, "note=something else of this name is in the way");
		return STEP_WAIT;
	}
	if (reply != REPLY_DONE && reply != REPLY_REFUSED)
		return no_answer(reply);
	return lock_missed(k, refusal);
}

/* Remove a directory that has been empty for --stale: a plain client has died, or one of ours between
   A1 and A2. */
static enum step bare_lock(struct dirlock *k)
{
	struct remote_dir *r = &k->remote_dir;
	int64_t now = clock_boottime(), stamp = 0;

	/* By its time, a directory made anew is not taken for the one seen before. */
	if (r->ops->modified(r, k->lock, &stamp) != REPLY_DONE)
		stamp = 0;
	if (stamp != k->empty_stamp || k->seen.empty_since == NEVER) {
		k->empty_stamp = stamp;
		k->seen.empty_since = now;
	}
	if (k->options->stale == 0 || now - k->seen.empty_since <= k->options->stale)
		return STEP_WAIT;
	if (r->ops->rmdir(r, k->lock) != REPLY_DONE)
		return STEP_WAIT;
	say(SAYS_NOTE " %s: removed: it was empty for too long", k->lock);
	listing_clear(&k->seen);
	return STEP_AGAIN;
}

/* A1, making the directory, was refused: look at the holder. */
static enum step lock_refused(struct dirlock *k)
{
	int64_t asked = clock_boottime();
	char refusal[sizeof k->remote_dir.text];
	const struct owner_sign *silent;
	enum reply reply;

	memcpy(refusal, k->remote_dir.text, sizeof refusal);
	reply = dirlock_look(k);
	if (reply == REPLY_UNKNOWN || reply == REPLY_FATAL)
		return no_answer(reply);
	if (reply == REPLY_REFUSED || listing_empty(&k->listing)) {
		enum step step = absent_or_bare(k, reply, refusal);

		return step == STEP_WAIT && reply == REPLY_DONE && k->misses == 0 ? bare_lock(k) : step;
	}
	k->misses = 0;
	if (k->listing.signs > 0)
		dirlock_describe(&k->listing.sign[0], k->who, sizeof k->who);
	else
		snprintf(k->who, sizeof k->who, "mode=exclusive note=a directory with other things in it");
	silent = listing_silent(&k->listing, asked);
	if (silent != NULL && dirlock_break(k, silent, silent->ttl + 1))
		return STEP_AGAIN;
	if (k->options->no_wait && dirlock_break_by_age(k))
		return STEP_AGAIN;
	return STEP_WAIT;
}

/* A2, putting our sign in, was refused. If the empty directory of our A1 is still there, the server takes no sign:
 * leave none behind. If not, another client has removed it. */
static enum step sign_refused(struct dirlock *k, int64_t began)
{
	struct remote_dir *r = &k->remote_dir;
	char refusal[sizeof r->text];

	memcpy(refusal, r->text, sizeof refusal);
	if (dirlock_may_be_removed(k, began, clock_boottime()) ||
	    r->ops->rmdir(r, k->lock) != REPLY_DONE)
		return STEP_BACK;
	error_plain(&r->error, ERROR_CREATE, "cannot create a directory in the lock's: %s", refusal);
	return STEP_FAILED;
}

/* The lock is ours if not too much time has passed since A1, at began; marked: the end of A2. */
static enum step in_time(struct dirlock *k, int64_t began, int64_t marked)
{
	struct remote_dir *r = &k->remote_dir;

	if (dirlock_may_be_removed(k, began, marked)) {
		r->ops->rmdir(r, dirlock_path(k, k->mine.name));
		return STEP_BACK;
	}
	/* Too little is left of the lease. */
	if (clock_boottime() > lease_moment(began + (int64_t)k->ttl * SECOND, (int64_t)k->ttl * SECOND, LEASE_ENTER)) {
		dirlock_give_back(k);
		return STEP_BACK;
	}
	return STEP_HELD;
}

/* A3: is the lock ours, now that our sign is in? */
static enum step alone(struct dirlock *k, int64_t began)
{
	int64_t marked = clock_boottime();
	/* A listing that is not atomic (NFS behind the server) can miss a sign that is renamed
	   meanwhile. No holder renames twice so soon, so a second listing finds it. Only after a
	   slow A1 and A2 can a holder be old enough to rename. */
	int listings = clock_boottime() - began > (int64_t)k->ttl * SECOND / 8 ? 2 : 1;

	while (listings-- > 0) {
		enum reply reply = dirlock_look(k);

		if (reply != REPLY_DONE || !listing_holds(&k->listing, &k->mine)) {
			bool seen = listing_find(&k->listing, k->mine.name) != NULL;

			k->unseen = seen || reply != REPLY_DONE ? 0 : k->unseen + 1;
			dirlock_give_back(k);
			return reply == REPLY_DONE || reply == REPLY_REFUSED ? STEP_BACK
									     : no_answer(reply);
		}
	}
	k->unseen = 0;
	return in_time(k, began, marked);
}

static enum step attempt(struct dirlock *k)
{
	struct remote_dir *r = &k->remote_dir;
	int64_t began = clock_boottime();
	enum reply reply = r->ops->mkdir(r, k->lock); /* A1: make the directory */

	if (reply == REPLY_REFUSED)
		return lock_refused(k);
	if (reply != REPLY_DONE)
		/* If the directory was made after all, it has no sign: bare_lock() removes it. */
		return no_answer(reply);
	k->misses = 0;
	listing_clear(&k->seen);
	sign_make(&k->mine, k->ttl, k->options->pid);
	k->sent = clock_boottime();
	reply = r->ops->mkdir(r, dirlock_path(k, k->mine.name)); /* A2: put our sign in */
	if (reply == REPLY_REFUSED)
		return sign_refused(k, began);
	if (reply == REPLY_FATAL)
		return STEP_FAILED;
	return alone(k, began); /* A3: is it alone?  Also finds a sign whose reply was lost */
}

/* An outcome, or -1 to try again. */
static int dirlock_verdict(struct dirlock *k, enum step step, bool last, unsigned int tries)
{
	k->error = k->remote_dir.error;
	if (step == STEP_HELD)
		return TAKEN;
	k->sent = 0;
	if (step == STEP_FAILED)
		return FAILED;
	if (k->unseen >= 3) {
		error_plain(&k->error, ERROR_UNAVAILABLE,
		    "the server does not list what was made there");
		return FAILED;
	}
	if (step == STEP_BACK && k->options->no_wait && tries < COLLISIONS_MOST)
		return -1;
	if (step == STEP_UNKNOWN && k->options->no_wait && tries < BREAKS_UNKNOWN_MOST)
		return -1;
	if (protocol_released() && !k->options->no_wait)
		return RELEASED;
	if (step == STEP_AGAIN || (!last && !k->options->no_wait))
		return -1;
	if (step == STEP_UNKNOWN && k->error.kind != ERROR_NONE)
		return FAILED;
	return BUSY;
}

enum engine_outcome dirlock_acquire(struct dirlock *k)
{
	const struct options *o = k->options;
	int64_t give_up = o->wait == NEVER ? NEVER : clock_boottime() + o->wait;

	for (unsigned int tries = 1;; tries++) {
		bool last = clock_boottime() >= give_up;
		enum step step = attempt(k);
		int64_t pause = 0;
		int outcome = dirlock_verdict(k, step, last, tries);

		if (outcome >= 0)
			return (enum engine_outcome)outcome;
		if (step == STEP_WAIT) {
			say_wait(k->who);
			pause = spread(o->interval);
		} else if (step == STEP_BACK) {
			pause = earlier(spread(200 * MILLISECOND) - 140 * MILLISECOND,
			    spread(o->interval));
		} else if (step == STEP_UNKNOWN) {
			say_wait("note=the server does not answer");
			pause = spread(2 * o->interval);
		}
		if (pause > 0)
			loop_wait(earlier(clock_boottime() + pause, give_up));
		if (protocol_released() && !o->no_wait)
			return RELEASED;
	}
}
