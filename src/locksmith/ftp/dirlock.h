/* SPDX-License-Identifier: MIT */
/* locksmith/ftp/dirlock.h - a lock made of directories on a server.
 *
 *   lock/                                        making it decides; absent = free
 *   lock/sl1.x.60.17.3c25951782f8c905.15496.web1 the owner's sign (listing.h)
 *
 * Acquire:  A1 make lock   A2 make lock/T0   A3 list lock: ours only if no other sign conflicts;
 *           else remove T0, and begin again after a random pause
 * Hold:     rename Tn to Tn+1 at every quarter of the ttl
 * Release:  remove Tn, then lock
 * Break:    remove lock/<the exact name> of a sign that was unchanged for longer than its ttl: a
 *           compare-and-swap, which fails if the owner has renamed the sign, and makes the owner's
 *           next rename fail if not
 *
 * A3 makes it safe: tests/models/ftp.py, which has these steps, tries every interleaving with and
 * without it. */
#ifndef SEMLOCK_LOCKSMITH_FTP_DIRLOCK_H
#define SEMLOCK_LOCKSMITH_FTP_DIRLOCK_H

#include "locksmith/common/engine.h"
#include "locksmith/common/renewal.h"
#include "locksmith/ftp/remote_dir.h"

/* Longer than the path of a sign in a lock directory, with its NUL. */
enum { DIRLOCK_PATH = 1400 };

struct dirlock {
	const struct options *options;
	struct remote_dir remote;
	char path[1200]; /* absolute path of the lock directory */
	char parent[1100];
	const char *base; /* the last part of path */
	unsigned int ttl; /* seconds */
	struct owner_sign mine;
	int64_t sent; /* when the last confirmed sign of life was sent */
	struct listing listing;
	struct listing seen; /* the last complete one: the ages of the next are counted from it */
	/* modification time, by the server, of the empty directory that we watch */
	int64_t empty_stamp;
	char who[400];          /* the last known holder, for messages */
	unsigned int misses;    /* A1 refused, and then nothing there, so many times in a row */
	unsigned int unseen;    /* our sign was made but not listed, so many times in a row */
	struct renewal renewal; /* while we hold */
	int64_t tried;          /* when the heartbeat without a reply was first sent; 0: none */
	/* when a removal of our sign was first sent to which no answer came; 0: none */
	int64_t removing;
	struct error error;
};

/* Put the absolute path of the entry NAME of the lock directory into PATH, and return it. */
const char *dirlock_path(const struct dirlock *lock, const char *name, char path[DIRLOCK_PATH]);

/* List the lock directory into lock->listing, and lock->seen if it is complete. */
enum reply dirlock_look(struct dirlock *lock);

/* The fields of a sign, as those of a WAIT line. */
void dirlock_describe(const struct owner_sign *sign, char *text, size_t size);

/* Take the lock.  With ENGINE_FAILED, lock->error is filled.  protocol_released() may have become
 * true meanwhile. */
enum engine_outcome dirlock_acquire(struct dirlock *lock);

/* True if another client may have removed our directory, empty from SINCE to NOW, as stale: what is
 * there now may be a plain client's. */
bool dirlock_may_be_removed(const struct dirlock *lock, int64_t since, int64_t now);

#endif
