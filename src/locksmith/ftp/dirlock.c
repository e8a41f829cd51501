#include <config.h>

#include "locksmith/ftp/dirlock.h"

#include "locksmith/common/clock.h"
#include "locksmith/common/engine.h"
#include "locksmith/common/protocol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_TTL 60

const char *dirlock_path(const struct dirlock *k, const char *name)
{
	static char path[2][1400];
	static int which;

	which = !which;
	snprintf(path[which], sizeof path[which], "%s/%s", k->lock, name);
	return path[which];
}

static const char *dirlock_beside(const struct dirlock *k, const char *prefix, const char *nonce)
{
	static char path[1200];

	snprintf(path, sizeof path, "%s%s%s%s", k->parent, k->parent[1] == '\0' ? "" : "/", prefix,
	    nonce);
	return path;
}

enum reply dirlock_probe(struct dirlock *k, int64_t *seconds)
{
	struct remote_dir *r = &k->remote_dir;
	struct owner_token probe;
	const char *path;
	enum reply reply;

	/* The name has no dot in front: some servers hide such names. */
	token_make(&probe, 'x', 0, k->ttl, k->options->pid);
	path = dirlock_beside(k, "sl-probe-", probe.nonce);
	reply = r->ops->mkdir(r, path);
	if (reply != REPLY_DONE)
		return reply;
	if (seconds != NULL)
		reply = r->ops->modified(r, path, seconds);
	r->ops->rmdir(r, path);
	return reply;
}

static void add_entry(void *data, const char *name)
{
	listing_add(data, name);
}

enum reply dirlock_look(struct dirlock *k)
{
	enum reply reply;

	listing_clear(&k->listing);
	reply = k->remote_dir.ops->list(&k->remote_dir, k->lock, add_entry, &k->listing);
	if (reply == REPLY_DONE) {
		listing_note_ages(&k->listing, &k->seen, clock_boottime());
		k->seen = k->listing;
	}
	return reply;
}

void dirlock_describe(const struct owner_token *t, char *text, size_t size)
{
	char slot[24] = "";

	if (t->mode == 'n')
		snprintf(slot, sizeof slot, " slot=%u", t->slot);
	snprintf(text, size, "pid=%ld host=%s mode=%s%s", t->pid, t->host,
	    lease_mode_name((enum lease_mode)t->mode), slot);
}

bool dirlock_break(struct dirlock *k, const struct owner_token *t, int64_t seconds)
{
	struct remote_dir *r = &k->remote_dir;

	if (r->ops->rmdir(r, dirlock_path(k, t->name)) != REPLY_DONE)
		return false;
	say("NOTE taken over from %ld on %s, silent for %lld s", t->pid, t->host, (long long)seconds);
	/* The server refuses this if another token is in it. */
	r->ops->rmdir(r, k->lock);
	return true;
}

bool dirlock_may_be_removed(const struct dirlock *k, int64_t since, int64_t now)
{
	return k->options->stale > 0 && now - since >= k->options->stale;
}

void dirlock_give_back(struct dirlock *k)
{
	enum reply reply = REPLY_UNKNOWN;

	for (int try = 0; try < 3 && reply == REPLY_UNKNOWN; try++)
		reply = k->remote_dir.ops->rmdir(&k->remote_dir, dirlock_path(k, k->mine.name));
	/* Only if our token was surely removed now: else the directory may be a new one of another
	 * client. */
	if (reply == REPLY_DONE)
		k->remote_dir.ops->rmdir(&k->remote_dir, k->lock);
}

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
		return failure_set(&k->failure, EXIT_UNAVAILABLE, "the server names no login directory");
	k->base = k->lock + (slash - k->parent) + 1;
	slash[slash == k->parent ? 1 : 0] = '\0';
	return 0;
}

static int dirlock_who(struct dirlock *k)
{
	enum reply reply = dirlock_look(k);
	char text[300];

	if (reply == REPLY_FATAL || reply == REPLY_UNKNOWN) {
		k->failure = k->remote_dir.failure;
		return k->failure.status;
	}
	for (size_t i = 0; i < k->listing.tokens; i++) {
		dirlock_describe(&k->listing.token[i], text, sizeof text);
		say("WHO state=holds %s", text);
	}
	if (k->listing.tokens > 0)
		return EXIT_BUSY;
	if (k->remote_dir.ops->enter(&k->remote_dir, k->lock) != REPLY_DONE)
		return EXIT_RELEASED;
	say("WHO state=holds mode=exclusive note=a directory without a token");
	return EXIT_BUSY;
}

static int dirlock_lock(struct dirlock *k)
{
	int status = dirlock_acquire(k);

	if (status == EXIT_BUSY)
		say("BUSY %s", k->who);
	if (status != EXIT_RELEASED || k->sent == 0)
		return status;
	return dirlock_hold(k);
}

static int dirlock_run(const struct options *o, struct failure *failure)
{
	static struct dirlock lock_; /* too large for the stack */
	struct dirlock *k = &lock_;
	int64_t ttl = o->ttl > 0 ? o->ttl : DEFAULT_TTL * NS_PER_S;
	int status;

	*k = (struct dirlock){.options = o, .ttl = (unsigned int)((ttl + NS_PER_S - 1) / NS_PER_S)};
	listing_clear(&k->seen);
	if (o->slots > LISTING_MOST) {
		failure_set(failure, EXIT_USAGE, "--slots: at most %d on a server of this kind", LISTING_MOST);
		return EXIT_USAGE;
	}
	if (remote_dir_open(&k->remote_dir, &o->url, o->answer_by) != REPLY_DONE) {
		k->failure = k->remote_dir.failure;
		status = k->failure.status;
	} else if (set_paths(k) != 0) {
		status = k->failure.status;
	} else {
		status = o->action == ACTION_WHO ? dirlock_who(k) : dirlock_lock(k);
	}
	remote_dir_close(&k->remote_dir);
	*failure = k->failure;
	return status;
}

const struct engine engine = {
    .name = "ftp",
    .schemes = "ftp ftpes ftps sftp",
    .words = "shared slots",
    .parse = url_parse,
    .run = dirlock_run,
};
