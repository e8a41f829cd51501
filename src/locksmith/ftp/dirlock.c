/* SPDX-License-Identifier: MIT */
/* How a lock directory is taken. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/ftp/dirlock.h"

/* a margin, because the server's times, that of the last change and the present one, are in whole
 * seconds */
#define MARGIN_SECONDS 2
#define MISSES_BEFORE_DOUBT 3
#define MISSES_MOST 30
#define UNKNOWN_MOST 3 /* tries without an answer, with --no-wait */
#define UNSEEN_MOST 3

const char *dirlock_path(const struct dirlock *lock, const char *name, char path[DIRLOCK_PATH])
{
	snprintf(path, DIRLOCK_PATH, "%s/%s", lock->path, name);
	return path;
}

/* Give the next requests up when the look's time is over: at worst they leave our sign, which
 * expires after a lease. */
static void may_give_up(struct dirlock *lock)
{
	lock->remote.until = later(lock->options->answer_by, clock_boottime() + 2 * SECOND);
}

/* Give the next requests the usual time.  If we gave one up too early, it could leave an empty
 * directory, which blocks the lock until --stale, or remove a directory that another client has
 * made since. */
static void must_know(struct dirlock *lock)
{
	lock->remote.until = NEVER;
}

/* Remove SIGN from the lock directory.  Returns the server's reply. */
static enum reply remove_sign(struct dirlock *lock, const struct owner_sign *sign)
{
	char path[DIRLOCK_PATH];

	must_know(lock);
	return lock->remote.ops->rmdir(&lock->remote, dirlock_path(lock, sign->name, path));
}

/* Make a directory beside the lock, and remove it.  Unless SECONDS is NULL, set *SECONDS to the
 * directory's modification time, which is the present time by the server's clock.  Returns
 * REPLY_DONE, or the first other reply. */
static enum reply probe_beside(struct dirlock *lock, int64_t *seconds)
{
	struct remote_dir *remote = &lock->remote;
	struct owner_sign probe;
	char path[1200];
	enum reply reply;

	/* Do not begin the name with a dot, because some servers hide such names. */
	must_know(lock);
	sign_make(&probe, lock->ttl, lock->options->pid);
	snprintf(path, sizeof path, "%s%ssl-probe-%s", lock->parent,
	    lock->parent[1] == '\0' ? "" : "/", probe.nonce);
	reply = remote->ops->mkdir(remote, path);
	if (reply != REPLY_DONE)
		return reply;
	if (seconds != NULL)
		reply = remote->ops->modified(remote, path, seconds);
	remote->ops->rmdir(remote, path);
	return reply;
}

enum reply dirlock_look(struct dirlock *lock)
{
	enum reply reply;

	listing_clear(&lock->listing);
	reply = lock->remote.ops->list(&lock->remote, lock->path, listing_add, &lock->listing);
	if (reply == REPLY_DONE) {
		listing_note_ages(&lock->listing, &lock->seen, clock_boottime());
		lock->seen = lock->listing;
	}
	return reply;
}

void dirlock_describe(const struct owner_sign *sign, char *text, size_t size)
{
	snprintf(text, size, "pid=%ld host=%s mode=exclusive", sign->pid, sign->host);
}

#define BARE "a directory without a sign of its holder"

void dirlock_describe_bare(int64_t stamp, char *text, size_t size)
{
	char since[40] = "";

	if (stamp != 0)
		snprintf(since, sizeof since, " " FIELD_SINCE "%lld", (long long)stamp);
	snprintf(text, size, FIELD_MODE "exclusive%s " FIELD_NOTE BARE, since);
}

/* Remove the sign of an owner that was silent for SECONDS.  Returns true if this call has removed
 * it. */
static bool break_sign(struct dirlock *lock, const struct owner_sign *sign, int64_t seconds)
{
	struct remote_dir *remote = &lock->remote;

	if (remove_sign(lock, sign) != REPLY_DONE)
		return false;
	say(SAYS_NOTE " taken over from %ld on %s, silent for %lld s", sign->pid, sign->host,
	    (long long)seconds);
	/* the server refuses this if another sign is in the directory */
	remote->ops->rmdir(remote, lock->path);
	return true;
}

bool dirlock_may_be_removed(const struct dirlock *lock, int64_t since, int64_t now)
{
	return lock->options->stale > 0 && now - since >= lock->options->stale;
}

enum reply dirlock_give_back(struct dirlock *lock)
{
	enum reply reply = remove_sign(lock, &lock->mine);

	/* Remove the directory only if we surely removed our sign just now: else it may be another
	 * client's new one. */
	if (reply == REPLY_DONE)
		lock->remote.ops->rmdir(&lock->remote, lock->path);
	lock->left = reply == REPLY_UNKNOWN;
	return reply;
}

/* ---- with --no-wait: find the age of a lock by the server's own clock.  If the lock seems to be
 * stale, watch its signs from one heartbeat to the next ---- */

/* Do all signs stay as they are from one heartbeat to the next?  Do not rely on the server's clock
 * alone: it may have been set, or its times be cached.  But a sign that changes has a living
 * owner. */
static bool stand_still(struct dirlock *lock, unsigned int ttl)
{
	static struct listing before;
	int64_t end = clock_boottime() + (int64_t)ttl * SECOND / 3 + SECOND;

	before = lock->listing;
	say_wait(lock->who); /* with WAIT, semlock -n goes on waiting for us */
	while (clock_boottime() < end) {
		loop_pause(earlier(end, clock_boottime() + lock->options->interval));
		if (protocol_released()) /* semlock has ended: take nothing */
			return false;
		may_give_up(lock);
		if (dirlock_look(lock) != REPLY_DONE || lock->listing.signs != before.signs)
			return false;
		for (size_t i = 0; i < lock->listing.signs; i++)
			if (listing_find(&before, lock->listing.sign[i].name) == NULL)
				return false;
	}
	return true;
}

/* Remove the signs if all owners are silent by the server's own clock.  Returns true if a sign was
 * removed. */
static bool break_by_age(struct dirlock *lock)
{
	struct remote_dir *remote = &lock->remote;
	int64_t changed, now;
	unsigned int longest = 0;
	bool broken = false;

	if (lock->listing.signs == 0)
		return false;
	/* Every heartbeat renames an entry, which sets the modification time of the directory. */
	if (remote->ops->modified(remote, lock->path, &changed) != REPLY_DONE ||
	    probe_beside(lock, &now) != REPLY_DONE)
		return false;
	for (size_t i = 0; i < lock->listing.signs; i++)
		if (lock->listing.sign[i].ttl > longest)
			longest = lock->listing.sign[i].ttl;
	if (now - changed <= (int64_t)longest + MARGIN_SECONDS || !stand_still(lock, longest))
		return false;
	for (size_t i = 0; i < lock->listing.signs; i++)
		broken = break_sign(lock, &lock->listing.sign[i], now - changed) || broken;
	return broken;
}

/* ---- A1, A2, A3 ---- */

enum step {
	STEP_HELD,
	STEP_AGAIN,   /* try again at once */
	STEP_BACK,    /* try again after a short random pause, because two clients have met */
	STEP_WAIT,    /* another client holds the lock */
	STEP_UNKNOWN, /* no answer */
	STEP_FAILED   /* lock->remote.error is filled */
};

static enum step no_answer(enum reply reply)
{
	return reply == REPLY_FATAL ? STEP_FAILED : STEP_UNKNOWN;
}

/* A1, making the directory, was refused, but no directory is there.  Most often its holder has
 * released the lock in between.  But if the server refuses another name, too, we cannot write to
 * the directory above. */
static enum step lock_missed(struct dirlock *lock, const char *refusal)
{
	struct remote_dir *remote = &lock->remote;
	enum reply reply;

	if (++lock->misses < MISSES_BEFORE_DOUBT)
		return STEP_AGAIN;
	reply = probe_beside(lock, NULL);
	if (reply == REPLY_DONE && lock->misses < MISSES_MOST)
		return STEP_BACK;
	if (!reply_is_answer(reply))
		return no_answer(reply);
	reply = remote->ops->enter(remote, lock->parent);
	error_plain(&remote->error, ERROR_CREATE,
	    "cannot create: %s (the directory above it is %s)", refusal,
	    reply == REPLY_DONE ? "there" : "missing, or closed to us");
	return STEP_FAILED;
}

struct entry_search {
	const char *name;
	bool found;
};

static void compare_name(void *data, const char *name)
{
	struct entry_search *search = data;

	search->found = search->found || strcmp(search->name, name) == 0;
}

/* The listing of the lock directory is empty, or was refused: is the directory there at all? */
static enum step absent_or_bare(struct dirlock *lock, enum reply looked, const char *refusal)
{
	struct remote_dir *remote = &lock->remote;
	struct entry_search search = {lock->base, false};
	enum reply reply = remote->ops->enter(remote, lock->path);

	if (reply == REPLY_DONE) {
		lock->misses = 0;
		if (looked != REPLY_DONE)
			snprintf(lock->who, sizeof lock->who,
			    "mode=exclusive note=a directory that cannot be listed");
		return STEP_WAIT;
	}
	listing_clear(&lock->seen);
	if (reply != REPLY_REFUSED)
		return no_answer(reply);
	reply = remote->ops->list(remote, lock->parent, compare_name, &search);
	if (reply == REPLY_DONE && search.found && lock->misses < MISSES_MOST) {
		/* A file, or a directory made a moment ago.  Count a miss: a file must not block us
		 * forever. */
		lock->misses++;
		snprintf(lock->who, sizeof lock->who,
		    "note=something else of this name is in the way");
		return STEP_WAIT;
	}
	if (!reply_is_answer(reply))
		return no_answer(reply);
	return lock_missed(lock, refusal);
}

/* The directory last changed at STAMP.  Returns for how many ns at least it has been empty, by the
 * server's clock; 0: the server does not tell, or --stale was not given.  (A clock that was set
 * forward makes a directory look old, so trust the clock only if the user gave --stale.) */
static int64_t empty_already(struct dirlock *lock, int64_t stamp)
{
	const struct options *options = lock->options;
	int64_t now, seconds;

	if (!options->stale_given || options->stale == 0 || stamp == 0 ||
	    probe_beside(lock, &now) != REPLY_DONE)
		return 0;
	seconds = now - stamp - MARGIN_SECONDS;
	return seconds < 0 ? 0 : earlier(seconds, LONGEST_SECONDS) * SECOND;
}

/* If the directory has been bare for longer than a lease, report once what it may be: no lease ends
 * such a lock. */
static void tell_of_bare(struct dirlock *lock, int64_t now)
{
	char when[80] = "never removed (--stale=0)";

	if (lock->bare_told || now - lock->seen.empty_since <= lock->ttl * SECOND)
		return;
	lock->bare_told = true;
	if (lock->options->stale > 0)
		snprintf(when, sizeof when, "removed once it has been empty for %lld s (--stale)",
		    (long long)(lock->options->stale / SECOND));
	say(SAYS_NOTE " " BARE ": a plain client has made it, or a client of semlock's that "
		      "was killed; it is %s",
	    when);
}

/* The directory is there, without a sign.  Remove it when it has been empty for --stale; dirlock.h
 * says why not after a lease. */
static enum step bare_lock(struct dirlock *lock)
{
	struct remote_dir *remote = &lock->remote;
	int64_t now = clock_boottime(), stamp = 0;

	/* The modification time tells a directory that was made anew from the one that we saw
	 * before. */
	if (remote->ops->modified(remote, lock->path, &stamp) != REPLY_DONE)
		stamp = 0;
	dirlock_describe_bare(stamp, lock->who, sizeof lock->who);
	if (stamp != lock->empty_stamp || lock->seen.empty_since == NEVER) {
		lock->empty_stamp = stamp;
		lock->bare_told = false;
		lock->seen.empty_since = now - empty_already(lock, stamp);
		/* If the server's clock was read, that took time, in which the directory may have
		 * been made anew: look again. */
		return lock->seen.empty_since == now ? STEP_WAIT : STEP_AGAIN;
	}
	if (lock->options->stale == 0 || now - lock->seen.empty_since <= lock->options->stale) {
		tell_of_bare(lock, now);
		return STEP_WAIT;
	}
	must_know(lock);
	if (remote->ops->rmdir(remote, lock->path) != REPLY_DONE)
		return STEP_WAIT;
	say(SAYS_NOTE " %s: removed: it was empty for too long", lock->path);
	listing_clear(&lock->seen);
	return STEP_AGAIN;
}

/* A1, making the directory, was refused: look at the holder. */
static enum step lock_refused(struct dirlock *lock)
{
	int64_t asked = clock_boottime();
	char refusal[sizeof lock->remote.text];
	const struct owner_sign *silent;
	enum reply reply;

	memcpy(refusal, lock->remote.text, sizeof refusal);
	may_give_up(lock);
	reply = dirlock_look(lock);
	if (!reply_is_answer(reply))
		return no_answer(reply);
	if (reply == REPLY_REFUSED || listing_empty(&lock->listing)) {
		enum step step = absent_or_bare(lock, reply, refusal);

		return step == STEP_WAIT && reply == REPLY_DONE && lock->misses == 0
		           ? bare_lock(lock)
		           : step;
	}
	lock->misses = 0;
	if (lock->listing.signs > 0)
		dirlock_describe(&lock->listing.sign[0], lock->who, sizeof lock->who);
	else
		snprintf(lock->who, sizeof lock->who,
		    "mode=exclusive note=a directory with other things in it");
	silent = listing_silent(&lock->listing, asked);
	if (silent != NULL && break_sign(lock, silent, silent->ttl + 1))
		return STEP_AGAIN;
	if (lock->options->no_wait && break_by_age(lock))
		return STEP_AGAIN;
	return STEP_WAIT;
}

/* A3: is the lock ours, now that our sign is in it?  A1 began at BEGAN. */
static enum step alone(struct dirlock *lock, int64_t began)
{
	int64_t marked = clock_boottime(), lease = lock->ttl * SECOND;
	/* A listing that is not atomic (NFS behind the server) can miss a sign that is renamed
	 * meanwhile.  A second listing finds the sign, because no holder renames twice so soon.
	 * List twice only after a slow A1 and A2: otherwise no other holder is old enough to
	 * rename. */
	int listings = marked - began > lease / 8 ? 2 : 1;

	while (listings-- > 0) {
		enum reply reply = dirlock_look(lock);

		if (reply != REPLY_DONE || !listing_holds(&lock->listing, &lock->mine)) {
			bool seen = listing_find(&lock->listing, lock->mine.name) != NULL;

			lock->unseen = seen || reply != REPLY_DONE ? 0 : lock->unseen + 1;
			lock->left = true;
			/* a silent server would not remove our sign now, either */
			if (!reply_is_answer(reply))
				return no_answer(reply);
			dirlock_give_back(lock);
			return STEP_BACK;
		}
	}
	lock->unseen = 0;
	if (dirlock_may_be_removed(lock, began, marked)) {
		remove_sign(lock, &lock->mine);
		return STEP_BACK;
	}
	return STEP_HELD;
}

static enum step attempt(struct dirlock *lock)
{
	struct remote_dir *remote = &lock->remote;
	char refusal[sizeof remote->text], path[DIRLOCK_PATH];
	int64_t began;
	enum reply reply;

	if (lock->left) {
		reply = dirlock_give_back(lock);
		if (!reply_is_answer(reply))
			return no_answer(reply);
	}
	must_know(lock);
	began = clock_boottime();
	reply = remote->ops->mkdir(remote, lock->path); /* A1: make the directory */
	if (reply == REPLY_REFUSED)
		return lock_refused(lock);
	if (reply != REPLY_DONE)
		/* If the directory was made nevertheless, it has no sign, and bare_lock() will
		 * remove it. */
		return no_answer(reply);
	lock->misses = 0;
	listing_clear(&lock->seen);
	sign_make(&lock->mine, lock->ttl, lock->options->pid);
	may_give_up(lock);
	lock->sent = clock_boottime();
	/* A2: put our sign in the directory */
	reply = remote->ops->mkdir(remote, dirlock_path(lock, lock->mine.name, path));
	if (reply == REPLY_FATAL)
		return STEP_FAILED;
	if (reply != REPLY_REFUSED)
		/* A3: is our sign alone?  This also finds the sign if the reply to A2 was lost. */
		return alone(lock, began);
	/* A2 was refused.  If the directory that A1 made is still there and empty, the server
	 * accepts no sign in it: remove the directory.  If not, another client has removed the
	 * directory. */
	memcpy(refusal, remote->text, sizeof refusal);
	must_know(lock);
	if (dirlock_may_be_removed(lock, began, clock_boottime()) ||
	    remote->ops->rmdir(remote, lock->path) != REPLY_DONE)
		return STEP_BACK;
	error_plain(&remote->error, ERROR_CREATE, "cannot create a directory in it: %s", refusal);
	return STEP_FAILED;
}

/* When the next try is due after STEP. */
static int64_t next_try(const struct dirlock *lock, enum step step)
{
	int64_t now = clock_boottime(), interval = lock->options->interval;

	switch (step) {
	case STEP_WAIT:
		return now + spread(interval);
	case STEP_BACK:
		return now +
		       earlier(spread(200 * MILLISECOND) - 140 * MILLISECOND, spread(interval));
	case STEP_UNKNOWN:
		/* With -n, pause briefly, because there is little time for the few tries. */
		return lock->options->no_wait ? now + spread(interval) / 8
		                              : now + spread(2 * interval);
	default:
		return 0;
	}
}

enum look dirlock_try(struct dirlock *lock, struct turn *turn, struct error *error)
{
	enum step step;

	/* Try again even when the time is over: a stale lock that we just removed is ours to
	 * take. */
	do
		step = attempt(lock);
	while (step == STEP_AGAIN && (!protocol_released() || turn->options->no_wait));
	turn->at = next_try(lock, step);
	lock->unknown = step == STEP_UNKNOWN ? lock->unknown + 1 : 0;
	if (lock->unseen >= UNSEEN_MOST) {
		error_plain(error, ERROR_UNAVAILABLE,
		    "the server does not list what was made there");
		return LOOK_FAILED;
	}
	switch (step) {
	case STEP_HELD:
		turn->deadline = lock->sent + turn->lease;
		return LOOK_TAKEN;
	case STEP_WAIT:
		snprintf(turn->who, sizeof turn->who, "%s", lock->who);
		return LOOK_BUSY;
	case STEP_UNKNOWN:
		/* We are logged in: the server was reached. */
		error_plain(error, ERROR_SLOW, "%s", lock->remote.error.text);
		return turn->options->no_wait && lock->unknown < UNKNOWN_MOST ? LOOK_AGAIN
		                                                              : LOOK_FAILED;
	case STEP_FAILED:
		*error = lock->remote.error;
		return LOOK_FAILED;
	default:
		return LOOK_AGAIN;
	}
}
