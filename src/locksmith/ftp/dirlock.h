/* SPDX-License-Identifier: MIT */
/* locksmith/ftp/dirlock.h - a lock made of directories on a server.
 *
 *   lock/                                         only one client can make it; absent: free
 *   lock/sl1.x.60.17.3c25951782f8c905.15496.web1  the owner's sign (listing.h)
 *
 * In the steps below, T0, T1, ... are the sign's names; the number counts the heartbeats.
 *
 * Acquire:  A1 make lock   A2 make lock/T0   A3 list lock: it is ours only if T0 is alone in it;
 *           else remove T0, and begin again after a random pause
 * Hold:     rename Tn to Tn+1 at every quarter of the ttl
 * Release:  remove Tn, then lock
 * Break:    if a sign was unchanged for longer than its ttl, remove lock/<its exact name>.  This is
 *           a compare-and-swap: if the owner has renamed the sign, the removal fails; if not, the
 *           owner's next rename fails
 *
 * A3 makes this safe: tests/models/ftp.py, which has these steps, tries every interleaving with and
 * without it.
 *
 * A bare directory is a lock directory without a sign.  What a client leaves behind if it is killed
 * or cut off:
 *   before A1, or A1 refused           nothing: the lock is as it was
 *   between A1 and A2                  a bare directory: busy until --stale
 *   between A2 and A3, or while it     its sign: free when the lease is over
 *   holds
 *   after it has removed a sign, its   a bare directory: busy until --stale
 *   own or a dead owner's, and before
 *   it has removed the directory
 *
 * If only semlock's clients used the directory, they could remove one another's bare directories at
 * any time: the owner's A2 would fail then, or its A3 would find another sign.  But a bare
 * directory may also be the lock of a plain client.  Such a client only makes the directory (MKD),
 * has no lease, and holds the lock as long as the directory exists.  The server has nothing to tell
 * the two kinds of directory apart, so MKD alone must decide for us, too.  ftp.py shows why each
 * way around that lets two clients in:
 *   - A client makes an intent beside the lock before A1: the client may die before A1, and then
 *     the bare directory is a plain client's.
 *   - A client makes a directory with its sign in it, and renames it to the lock's name: rename(2)
 *     replaces an empty directory, which may be a plain client's.
 *   - Clients remove a bare directory after a lease: a plain client holds for longer than that.
 * So --stale limits how long a bare directory lasts, and thereby how long a plain client may hold
 * the lock. */
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
	int64_t sent; /* when the request that makes our sign was sent */
	struct listing listing;
	/* the last complete listing; the ages in the next one are counted from it */
	struct listing seen;
	/* the server's modification time of the empty directory that we watch */
	int64_t empty_stamp;
	bool bare_told;       /* semlock was told what an empty directory may be */
	char who[400];        /* the last known holder, for messages */
	unsigned int misses;  /* how often in a row MKD was refused, but no directory was there */
	unsigned int unseen;  /* how often in a row our sign was made but not listed */
	unsigned int unknown; /* tries without an answer, in a row */
	bool holds;           /* we hold the lock: our sign is in the directory */
	bool left;            /* we do not hold the lock, but our sign may be there */
	int64_t tried;        /* when the heartbeat that has no reply yet was first sent; 0: none */
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

/* Remove the sign that a try has left.  If that succeeds, and the directory is empty, remove the
 * directory, too.  Returns the server's reply about the sign.  If no reply came, lock->left becomes
 * true. */
enum reply dirlock_give_back(struct dirlock *lock);

/* May another client have removed our directory, empty from SINCE to NOW, as stale?  Then the
 * directory that is there now may be a plain client's. */
bool dirlock_may_be_removed(const struct dirlock *lock, int64_t since, int64_t now);

#endif
