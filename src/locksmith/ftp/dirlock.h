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
 * without it.
 *
 * What a client leaves behind if it is killed or cut off:
 *   before A1, or A1 refused           nothing: the lock is as it was
 *   between A1 and A2                  a bare directory: busy until --stale
 *   between A2 and A3, or while it     its sign: free when the lease is over
 *   holds
 *   between the removals of a sign,    a bare directory: busy until --stale
 *   its own or a dead one's, and of
 *   the lock
 *
 * Semlock's clients could remove one another's bare directories at any time: the owner's A2 fails
 * then, or its A3 finds another sign.  But a bare directory may be the lock of a plain client,
 * which has no lease and holds the lock as long as the directory exists.  The server has nothing to
 * tell the two apart: a plain client only does MKD, so MKD alone must decide for us, too.  ftp.py
 * shows why each way around that lets two clients in:
 *   - an intent beside the lock, made before A1: its owner may die before A1, and then the
 *     directory is a plain client's
 *   - a directory with the sign in it, renamed to the lock's name: rename(2) replaces an empty
 *     directory, which may be a plain client's
 *   - a bare directory is removed after a lease: a plain client holds for longer than that
 * So --stale limits both: a bare directory, and how long a plain client may hold the lock. */
#ifndef SEMLOCK_LOCKSMITH_FTP_DIRLOCK_H
#define SEMLOCK_LOCKSMITH_FTP_DIRLOCK_H

#include "locksmith/common/engine.h"
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
	int64_t sent; /* when A2 was sent */
	struct listing listing;
	struct listing seen; /* the last complete one: the ages of the next are counted from it */
	/* modification time, by the server, of the empty directory that we watch */
	int64_t empty_stamp;
	bool bare_told;       /* semlock was told what an empty directory may be */
	char who[400];        /* the last known holder, for messages */
	unsigned int misses;  /* how often in a row A1 was refused, but nothing was there */
	unsigned int unseen;  /* how often in a row our sign was made but not listed */
	unsigned int unknown; /* tries without an answer, in a row */
	bool holds;           /* our sign is there */
	bool left;            /* we do not hold the lock, but our sign may be there */
	int64_t tried;        /* when the heartbeat without a reply was first sent; 0: none */
	int64_t removing;     /* when the removal of our sign was first tried; 0: not yet */
};

/* Put the absolute path of the entry NAME of the lock directory into PATH, and return it. */
const char *dirlock_path(const struct dirlock *lock, const char *name, char path[DIRLOCK_PATH]);

/* List the lock directory into lock->listing and, if the listing is complete, into lock->seen. */
enum reply dirlock_look(struct dirlock *lock);

/* Put the fields of SIGN, as those of a WAIT line, into TEXT (SIZE bytes). */
void dirlock_describe(const struct owner_sign *sign, char *text, size_t size);

/* The same for a lock directory without a sign, last modified at STAMP, in seconds since 1970; 0:
 * not known. */
void dirlock_describe_bare(int64_t stamp, char *text, size_t size);

/* Try once to take the lock, as engine.look() does. */
enum look dirlock_try(struct dirlock *lock, struct turn *turn, struct error *error);

/* Remove the sign that a try has left and, if that was the last, the directory.  Returns the
 * server's reply; lock->left is then true if none came. */
enum reply dirlock_give_back(struct dirlock *lock);

/* True if another client may have removed our directory, empty from SINCE to NOW, as stale: what is
 * there now may be a plain client's. */
bool dirlock_may_be_removed(const struct dirlock *lock, int64_t since, int64_t now);

#endif
