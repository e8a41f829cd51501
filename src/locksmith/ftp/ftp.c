/* SPDX-License-Identifier: MIT */
/* semlock-locksmith-ftp - the engine: which lock it is, what is asked of it, and how it is kept and
 * released. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "locksmith/common/engine.h"
#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/ftp/dirlock.h"

#define DEFAULT_TTL 60
#define RETRY (SECOND / 2)

/* With ftp://, a path with a second slash at its beginning is absolute, another is relative to the
 * login directory.  With sftp:// all are absolute, and /~/ is the login directory. */
static int set_paths(struct dirlock *lock)
{
	const char *path = lock->options->url.path;
	bool sftp = strcmp(lock->options->url.scheme, "sftp") == 0;
	const char *home = lock->remote.home;
	char *slash;

	if (sftp && strncmp(path, "~/", 2) == 0)
		path += 2;
	else if (sftp || path[0] == '/')
		home = "/";
	path += strspn(path, "/");
	snprintf(lock->path, sizeof lock->path, "%s%s%s", home,
	    home[strlen(home) - 1] == '/' ? "" : "/", path);
	snprintf(lock->parent, sizeof lock->parent, "%.*s", (int)sizeof lock->parent - 1,
	    lock->path);
	slash = strrchr(lock->parent, '/');
	if (slash == NULL || slash[1] == '\0')
		return error_plain(&lock->error, ERROR_UNAVAILABLE,
		    "the server names no login directory");
	lock->base = lock->path + (slash - lock->parent) + 1;
	slash[slash == lock->parent ? 1 : 0] = '\0';
	return 0;
}

/* The sign of life that was sent at that moment has arrived. */
static void note_life(struct dirlock *lock, int64_t sent)
{
	lock->renewal.deadline = sent + lock->renewal.lease;
	lock->tried = 0;
	lock->remote.until = lease_moment(lock->renewal.deadline, lock->renewal.lease, LEASE_LAST);
}

/* Give SIGN the name of the next heartbeat. */
static void next_sign(const struct dirlock *lock, struct owner_sign *sign)
{
	sign->beat++;
	sign->pid = options_pid(lock->options);
	sign_name(sign);
}

/* Rename the sign to its next number. */
static enum renewed beat(struct renewal *renewal, int64_t until, struct error *error)
{
	struct dirlock *lock = renewal->lock;
	struct owner_sign next = lock->mine;
	char from[DIRLOCK_PATH], to[DIRLOCK_PATH];
	enum reply reply;

	(void)until; /* note_life() has set it */
	next_sign(lock, &next);
	/* The first request may have been done: waiters count from there. */
	if (lock->tried == 0)
		lock->tried = clock_boottime();
	dirlock_path(lock, lock->mine.name, from);
	dirlock_path(lock, next.name, to);
	reply = lock->remote.ops->rename(&lock->remote, from, to);
	if (reply != REPLY_DONE) {
		if (reply == REPLY_REFUSED)
			error_plain(error, ERROR_LOST, "the server refuses its heartbeat: %s",
			    lock->remote.text);
		else
			error_plain(error, ERROR_LOST, "the server did not answer in time: %s",
			    lock->remote.error.text);
		/* The reply was lost, the sign broken, or the request refused for once: look. */
		if (dirlock_look(lock) != REPLY_DONE ||
		    listing_find(&lock->listing, lock->mine.name) != NULL)
			return RENEW_AGAIN;
		if (listing_find(&lock->listing, next.name) == NULL) {
			error_plain(error, ERROR_LOST, "it was taken over by another");
			return RENEW_GONE;
		}
	}
	lock->mine = next;
	note_life(lock, lock->tried);
	return RENEWED;
}

/* Remove sign and directory.  DONE, or REFUSED: the sign was broken before; UNKNOWN: try again. */
static enum reply let_go(struct dirlock *lock)
{
	struct remote_dir *remote = &lock->remote;
	int64_t now = clock_boottime();
	char path[DIRLOCK_PATH];
	enum reply reply = remote->ops->rmdir(remote, dirlock_path(lock, lock->mine.name, path));

	if (reply == REPLY_UNKNOWN || reply == REPLY_FATAL) {
		if (lock->removing == 0)
			lock->removing = now;
		return REPLY_UNKNOWN;
	}
	if (reply == REPLY_REFUSED) {
		reply = dirlock_look(lock);
		if (reply == REPLY_UNKNOWN || reply == REPLY_FATAL ||
		    listing_find(&lock->listing, lock->mine.name) != NULL)
			return REPLY_UNKNOWN;
		/* A heartbeat whose reply was lost may have renamed the sign. */
		next_sign(lock, &lock->mine);
		if (listing_find(&lock->listing, lock->mine.name) != NULL)
			return REPLY_UNKNOWN;
		now = clock_boottime();
		if (lock->removing == 0 || now >= lock->renewal.deadline)
			return REPLY_REFUSED;
		/* Our sign is removed, and another client may have removed the directory since. */
		if (dirlock_may_be_removed(lock, lock->removing, now))
			return REPLY_DONE;
	}
	/* Only once: a second request could remove the directory of a plain client that came after
	 * us. */
	remote->ops->rmdir(remote, lock->path);
	return REPLY_DONE;
}

/* Keep the lock until semlock wants it no more, or it is lost, and release it. */
static enum engine_outcome hold(struct dirlock *lock)
{
	int64_t lease = lock->ttl * SECOND, give_up;
	enum reply reply;

	lock->renewal = (struct renewal){.lock = lock,
	    .lease = lease,
	    .at = LEASE_BEAT,
	    .retry = RETRY,
	    .renew = beat};
	note_life(lock, lock->sent);
	if (renewal_hold(&lock->renewal, -1, -1, &lock->error) != 0)
		return ENGINE_FAILED;
	give_up = clock_boottime() + lease;
	lock->remote.until = NEVER;
	while ((reply = let_go(lock)) == REPLY_UNKNOWN && clock_boottime() < give_up)
		loop_pause(clock_boottime() + RETRY);
	if (reply == REPLY_DONE) {
		say(SAYS_FREE);
		return ENGINE_RELEASED;
	}
	if (reply == REPLY_REFUSED)
		error_plain(&lock->error, ERROR_LOST,
		    "it had been taken over before it was released");
	else
		error_plain(&lock->error, ERROR_UNAVAILABLE,
		    "%s; the lock is free when its lease ends", lock->remote.error.text);
	return ENGINE_FAILED;
}

static enum engine_outcome who(struct dirlock *lock)
{
	enum reply reply = dirlock_look(lock);
	int64_t stamp = 0;
	char text[300];

	if (reply == REPLY_FATAL || reply == REPLY_UNKNOWN) {
		lock->error = lock->remote.error;
		return ENGINE_FAILED;
	}
	for (size_t i = 0; i < lock->listing.signs; i++) {
		dirlock_describe(&lock->listing.sign[i], text, sizeof text);
		say(SAYS_WHO " " FIELD_STATE "holds %s", text);
	}
	if (lock->listing.signs > 0)
		return ENGINE_BUSY;
	if (lock->remote.ops->enter(&lock->remote, lock->path) != REPLY_DONE)
		return ENGINE_RELEASED;
	if (lock->remote.ops->modified(&lock->remote, lock->path, &stamp) != REPLY_DONE)
		stamp = 0;
	dirlock_describe_bare(stamp, text, sizeof text);
	say(SAYS_WHO " " FIELD_STATE "holds %s", text);
	return ENGINE_BUSY;
}

static enum engine_outcome run(const struct options *options, struct error *error)
{
	static struct dirlock the_lock; /* too large for the stack */
	struct dirlock *lock = &the_lock;
	enum engine_outcome outcome = ENGINE_FAILED;

	*lock = (struct dirlock){.options = options, .ttl = DEFAULT_TTL};
	if (options->ttl > 0)
		lock->ttl = (unsigned int)((options->ttl + SECOND - 1) / SECOND);
	listing_clear(&lock->seen);
	if (remote_dir_open(&lock->remote,
		strcmp(options->url.scheme, "sftp") == 0 ? &sftp_ops : &ftp_ops, &options->url,
		options->answer_by, options->no_wait) != REPLY_DONE)
		lock->error = lock->remote.error;
	else if (set_paths(lock) == 0)
		outcome = options->action == ACTION_WHO ? who(lock) : dirlock_acquire(lock);
	if (outcome == ENGINE_BUSY && options->action != ACTION_WHO)
		say(SAYS_BUSY " %s", lock->who);
	if (outcome == ENGINE_TAKEN)
		outcome = hold(lock);
	remote_dir_close(&lock->remote);
	*error = lock->error;
	return outcome;
}

static int ftp_parse(const char *text, struct url *url, struct error *error)
{
	return url_parse(text,
	    "put it into SEMLOCK_PASSWORD, or into ~/.netrc (machine HOST login USER password ...)",
	    url, error);
}

const struct engine engine = {
    .name = "ftp",
    .schemes = "ftp ftpes ftps sftp",
    .words = "",
    .parse = ftp_parse,
    .run = run,
};
