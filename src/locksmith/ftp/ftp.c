/* SPDX-License-Identifier: MIT */
/* semlock-locksmith-ftp - the engine: which lock it is, and what is asked of it. */
#include <config.h>

#include "locksmith/ftp/dirlock.h"

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_TTL 60

/* With ftp://, a path with a second slash at its beginning is absolute, another is relative to the login
   directory. With sftp:// all are absolute, and /~/ is the login directory. */
static int set_paths(struct dirlock *k)
{
	const char *path = k->options->url.path;
	bool sftp = strcmp(k->options->url.scheme, "sftp") == 0;
	const char *home = k->remote_dir.home;
	char *slash;

	if (sftp && strncmp(path, "~/", 2) == 0)
		path += 2;
	else if (sftp || path[0] == '/')
		home = "/";
	path += strspn(path, "/");
	snprintf(k->lock, sizeof k->lock, "%s%s%s", home, home[strlen(home) - 1] == '/' ? "" : "/",
	    path);
	snprintf(k->parent, sizeof k->parent, "%.*s", (int)sizeof k->parent - 1, k->lock);
	slash = strrchr(k->parent, '/');
	if (slash == NULL || slash[1] == '\0')
		return error_plain(&k->error, ERROR_UNAVAILABLE, "the server names no login directory");
	k->base = k->lock + (slash - k->parent) + 1;
	slash[slash == k->parent ? 1 : 0] = '\0';
	return 0;
}

static enum engine_outcome dirlock_who(struct dirlock *k)
{
	enum reply reply = dirlock_look(k);
	char text[300];

	if (reply == REPLY_FATAL || reply == REPLY_UNKNOWN) {
		k->error = k->remote_dir.error;
		return FAILED;
	}
	for (size_t i = 0; i < k->listing.signs; i++) {
		dirlock_describe(&k->listing.sign[i], text, sizeof text);
		say(SAYS_WHO " state=holds %s", text);
	}
	if (k->listing.signs > 0)
		return BUSY;
	if (k->remote_dir.ops->enter(&k->remote_dir, k->lock) != REPLY_DONE)
		return RELEASED;
	say(SAYS_WHO " state=holds mode=exclusive note=a directory without a sign of its holder");
	return BUSY;
}

static enum engine_outcome dirlock_lock(struct dirlock *k)
{
	enum engine_outcome outcome = dirlock_acquire(k);

	if (outcome == BUSY)
		say(SAYS_BUSY " %s", k->who);
	return outcome == TAKEN ? dirlock_hold(k) : outcome;
}

static enum engine_outcome dirlock_run(const struct options *o, struct error *error)
{
	static struct dirlock lock_; /* too large for the stack */
	struct dirlock *k = &lock_;
	int64_t ttl = o->ttl > 0 ? o->ttl : DEFAULT_TTL * SECOND;
	enum engine_outcome outcome = FAILED;

	if (o->mode != LEASE_EXCLUSIVE) {
		error_plain(error, ERROR_USAGE, "a lock on FTP or SFTP is exclusive alone");
		return FAILED;
	}
	*k = (struct dirlock){.options = o, .ttl = (unsigned int)((ttl + SECOND - 1) / SECOND)};
	listing_clear(&k->seen);
	if (remote_dir_open(&k->remote_dir, strcmp(o->url.scheme, "sftp") == 0 ? &sftp_ops : &ftp_ops, &o->url,
		o->answer_by) != REPLY_DONE) {
		k->error = k->remote_dir.error;
	} else if (set_paths(k) == 0) {
		outcome = o->action == ACTION_WHO ? dirlock_who(k) : dirlock_lock(k);
	}
	remote_dir_close(&k->remote_dir);
	*error = k->error;
	return outcome;
}

const struct engine engine = {
    .name = "ftp",
    .schemes = "ftp ftpes ftps sftp",
    .words = "",
    .parse = url_parse,
    .run = dirlock_run,
};
