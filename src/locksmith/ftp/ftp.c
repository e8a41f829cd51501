/* SPDX-License-Identifier: MIT */
/* semlock-locksmith-ftp - the engine: the path of the lock, the login, the heartbeat and the
 * release. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "locksmith/common/engine.h"
#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/ftp/dirlock.h"

static struct dirlock the_lock; /* too large for the stack */

/* With ftp://, a path with a second slash at its beginning is absolute; any other is relative to
 * the login directory.  With sftp://, all paths are absolute, and /~/ is the login directory. */
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
	if (home[0] == '\0')
		return error_plain(&lock->remote.error, ERROR_UNAVAILABLE,
		    "the server names no login directory");
	path += strspn(path, "/");
	snprintf(lock->path, sizeof lock->path, "%s%s%s", home,
	    home[strlen(home) - 1] == '/' ? "" : "/", path);
	snprintf(lock->parent, sizeof lock->parent, "%.*s", (int)sizeof lock->parent - 1,
	    lock->path);
	/* there is a slash after HOME, and none at the end of a URL's path */
	slash = strrchr(lock->parent, '/');
	lock->base = lock->path + (slash - lock->parent) + 1;
	slash[slash == lock->parent ? 1 : 0] = '\0';
	return 0;
}

static int prepare(struct options *options, struct error *error)
{
	struct dirlock *lock = &the_lock;
	int64_t ttl = options->ttl > 0 ? options->ttl : engine.ttl;

	lock->options = options;
	lock->ttl = (unsigned int)((ttl + SECOND - 1) / SECOND);
	listing_clear(&lock->seen);
	return url_parse(options->url_text,
	    "put it into SEMLOCK_PASSWORD, or into ~/.netrc (machine HOST login USER password ...)",
	    &options->url, error);
}

/* Log in, unless we are logged in.  Returns 0, or -1 with ERROR filled. */
static int log_in(struct dirlock *lock, struct error *error)
{
	const struct options *options = lock->options;

	if (lock->base != NULL)
		return 0;
	if (remote_dir_open(&lock->remote,
		strcmp(options->url.scheme, "sftp") == 0 ? &sftp_ops : &ftp_ops, &options->url,
		options->answer_by, options->no_wait) == REPLY_DONE &&
	    set_paths(lock) == 0)
		return 0;
	*error = lock->remote.error;
	remote_dir_close(&lock->remote);
	lock->base = NULL;
	return -1;
}

/* The sign of life that we sent at the moment SENT has arrived. */
static void note_life(struct dirlock *lock, struct turn *turn, int64_t sent)
{
	turn->deadline = sent + turn->lease;
	lock->tried = 0;
}

static enum look look(struct turn *turn, struct error *error)
{
	struct dirlock *lock = &the_lock;
	enum look look;

	if (lock->holds)
		return LOOK_TAKEN;
	if (log_in(lock, error) != 0)
		return LOOK_FAILED;
	turn->lease = lock->ttl * SECOND; /* in whole seconds, as in the sign */
	look = dirlock_try(lock, turn, error);
	lock->holds = look == LOOK_TAKEN;
	if (lock->holds)
		note_life(lock, turn, lock->sent);
	return look;
}

/* Give SIGN the name of the next heartbeat. */
static void next_sign(const struct dirlock *lock, struct owner_sign *sign)
{
	sign->beat++;
	sign->pid = options_pid(lock->options);
	sign_name(sign);
}

/* Rename our sign to the name of the next heartbeat. */
static enum renewed renew(struct turn *turn, int64_t until, struct error *error)
{
	struct dirlock *lock = &the_lock;
	struct owner_sign next = lock->mine;
	char from[DIRLOCK_PATH], to[DIRLOCK_PATH];
	enum reply reply;

	lock->remote.until = until;
	next_sign(lock, &next);
	/* An earlier try, to which no reply came, may have been carried out.  Waiters then count
	 * our lease from it, so we count from the first try. */
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
		/* Look what has happened: the reply was lost, or another client has removed our
		 * sign, or the server refused just this once. */
		if (dirlock_look(lock) != REPLY_DONE ||
		    listing_find(&lock->listing, lock->mine.name) != NULL)
			return RENEW_AGAIN;
		if (listing_find(&lock->listing, next.name) == NULL) {
			error_plain(error, ERROR_LOST, "it was taken over by another");
			lock->holds = false;
			return RENEW_GONE;
		}
	}
	lock->mine = next;
	note_life(lock, turn, lock->tried);
	return RENEWED;
}

/* The server refused to remove our sign.  Look whether the sign is there.  Returns FREE_GONE if
 * not, and FREE_AGAIN if it is, or if the server does not say. */
static enum freed look_for_sign(struct dirlock *lock, struct error *error)
{
	enum reply reply = dirlock_look(lock);

	if (!reply_is_answer(reply) || listing_find(&lock->listing, lock->mine.name) != NULL)
		return FREE_AGAIN;
	/* a heartbeat whose reply was lost may have renamed the sign */
	next_sign(lock, &lock->mine);
	if (listing_find(&lock->listing, lock->mine.name) != NULL)
		return FREE_AGAIN;
	error_plain(error, ERROR_LOST, "it had been taken over before it was released");
	return FREE_GONE;
}

/* May we remove the directory, now that our sign is not in it?  Not if another client may have
 * removed it before us: a plain client may have made it anew. */
static bool directory_is_ours(const struct dirlock *lock, const struct turn *turn, enum freed freed)
{
	int64_t now = clock_boottime();

	if (freed == FREE_GONE && (!turn->unsure || now >= turn->deadline))
		return false;
	return freed == FREED || !dirlock_may_be_removed(lock, lock->removing, now);
}

/* Remove what a try has left.  semlock waits for us for a second at most, so the removal gets its
 * full time. */
static enum freed release_left(struct dirlock *lock, struct error *error)
{
	enum reply reply = dirlock_give_back(lock);

	if (reply_is_answer(reply))
		return FREED;
	error_plain(error, ERROR_AWAY, "%s", lock->remote.error.text);
	return FREE_AGAIN;
}

/* Remove our sign, and then the directory. */
static enum freed release(struct turn *turn, int64_t until, struct error *error)
{
	struct dirlock *lock = &the_lock;
	struct remote_dir *remote = &lock->remote;
	char path[DIRLOCK_PATH];
	enum freed freed = FREED;
	enum reply reply;

	if (lock->left)
		return release_left(lock, error);
	if (!lock->holds)
		return FREED;
	if (lock->removing == 0)
		lock->removing = clock_boottime();
	remote->until = until;
	reply = remote->ops->rmdir(remote, dirlock_path(lock, lock->mine.name, path));
	if (reply == REPLY_REFUSED)
		freed = look_for_sign(lock, error);
	else if (reply != REPLY_DONE)
		freed = FREE_AGAIN;
	if (freed == FREE_AGAIN) { /* also after a refusal, because it may pass */
		error_plain(error, ERROR_AWAY, "%s",
		    reply == REPLY_REFUSED ? "the server does not remove the holder's sign"
					   : remote->error.text);
		return FREE_AGAIN;
	}
	lock->holds = false;
	/* Try this only once: a second request could remove the directory of a plain client that
	 * came after us. */
	if (directory_is_ours(lock, turn, freed))
		remote->ops->rmdir(remote, lock->path);
	return freed;
}

static enum look who(struct turn *turn, struct error *error)
{
	struct dirlock *lock = &the_lock;
	enum reply reply;
	int64_t stamp = 0;
	char text[300];

	(void)turn;
	if (log_in(lock, error) != 0)
		return LOOK_FAILED;
	reply = dirlock_look(lock);
	if (!reply_is_answer(reply)) {
		*error = lock->remote.error;
		return LOOK_FAILED;
	}
	for (size_t i = 0; i < lock->listing.signs; i++) {
		dirlock_describe(&lock->listing.sign[i], text, sizeof text);
		say(SAYS_WHO " " FIELD_STATE "holds %s", text);
	}
	if (lock->listing.signs > 0)
		return LOOK_BUSY;
	if (lock->remote.ops->enter(&lock->remote, lock->path) != REPLY_DONE)
		return LOOK_FREE;
	if (lock->remote.ops->modified(&lock->remote, lock->path, &stamp) != REPLY_DONE)
		stamp = 0;
	dirlock_describe_bare(stamp, text, sizeof text);
	say(SAYS_WHO " " FIELD_STATE "holds %s", text);
	return LOOK_BUSY;
}

static void hang_up(void)
{
	remote_dir_close(&the_lock.remote);
}

const struct engine engine = {
    .name = "ftp",
    .schemes = "ftp ftpes ftps sftp",
    .words = "",
    .stale = true,
    .ttl = 60 * SECOND,
    .beat = LEASE_BEAT,
    .prepare = prepare,
    .look = look,
    .renew = renew,
    .release = release,
    .who = who,
    .hang_up = hang_up,
};
