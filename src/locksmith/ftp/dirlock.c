/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/ftp/dirlock.h"

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"

#include <stdio.h>

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
	struct owner_sign probe;
	const char *path;
	enum reply reply;

	/* The name has no dot in front: some servers hide such names. */
	sign_make(&probe, k->ttl, k->options->pid);
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

void dirlock_describe(const struct owner_sign *t, char *text, size_t size)
{
	snprintf(text, size, "pid=%ld host=%s mode=exclusive", t->pid, t->host);
}

bool dirlock_break(struct dirlock *k, const struct owner_sign *t, int64_t seconds)
{
	struct remote_dir *r = &k->remote_dir;

	if (r->ops->rmdir(r, dirlock_path(k, t->name)) != REPLY_DONE)
		return false;
	say(SAYS_NOTE " taken over from %ld on %s, silent for %lld s", t->pid, t->host, (long long)seconds);
	/* The server refuses this if another sign is in it. */
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
	/* Only if our sign was surely removed now: else the directory may be a new one of another
	 * client. */
	if (reply == REPLY_DONE)
		k->remote_dir.ops->rmdir(&k->remote_dir, k->lock);
}
