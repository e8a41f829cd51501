/* SPDX-License-Identifier: MIT */
/* locksmith/ftp/dirlock.h - a lock made of directories on a server.

     lock/                                        making it decides; absent = free
     lock/sl1.x.60.17.3c25951782f8c905.15496.web1 the owner's sign (owner_sign.h)

   Acquire:  A1 make lock   A2 make lock/T0   A3 list lock: ours only if no other sign conflicts;
             else remove T0, and begin again after a random pause
   Hold:     rename Tn to Tn+1 at every quarter of the ttl
   Release:  remove Tn, then lock
   Break:    remove lock/<the exact name> of a sign that was unchanged for longer than its ttl: a
             compare-and-swap, which fails if the owner has renamed the sign, and makes the owner's
             next rename fail if not

   A3 makes it safe: tests/models/ftp.py, which has these steps, tries every interleaving with and
   without it. */
#ifndef SEMLOCK_LOCKSMITH_FTP_DIRLOCK_H
#define SEMLOCK_LOCKSMITH_FTP_DIRLOCK_H

#include "locksmith/ftp/listing.h"
#include "locksmith/common/engine.h"
#include "locksmith/ftp/remote_dir.h"

struct dirlock {
	const struct options *options;
	struct remote_dir remote_dir;
	char lock[1200]; /* absolute path of the lock directory */
	char parent[1100];
	const char *base; /* the last part of lock */
	unsigned int ttl; /* seconds */
	struct owner_sign mine;
	int64_t sent; /* when the last confirmed sign of life was sent */
	struct listing listing;
	struct listing seen; /* the last complete one: the ages of the next are counted from it */
	int64_t empty_stamp; /* modification time, by the server, of the empty directory that we watch */
	char who[400];	     /* the last known holder, for messages */
	unsigned int misses; /* A1 refused, and then nothing there, so many times in a row */
	unsigned int unseen; /* our sign was made but not listed, so many times in a row */
	struct error error;
};

/* Absolute path of an entry of the lock directory, valid until the next call but one. */
const char *dirlock_path(const struct dirlock *k, const char *name);

/* Makes a directory beside the lock, and removes it. Unless NULL: *seconds becomes its time, which is that of the
   server's clock. Returns the first reply that is not DONE. */
enum reply dirlock_probe(struct dirlock *k, int64_t *seconds);

/* Lists the lock directory into k->listing, and k->seen if it is complete. */
enum reply dirlock_look(struct dirlock *k);

/* The fields of a sign, as those of a WAIT line. */
void dirlock_describe(const struct owner_sign *t, char *text, size_t size);

/* Takes the lock.  With FAILED, k->error is filled.
   protocol_released() may have become true meanwhile. */
enum engine_outcome dirlock_acquire(struct dirlock *k);

/* With --no-wait: breaks the signs if all owners are silent by the server's own clock. True if a sign
   was broken. */
bool dirlock_break_by_age(struct dirlock *k);

/* Keeps the lock until protocol_released() or its loss, and releases it. RELEASED or FAILED. */
enum engine_outcome dirlock_hold(struct dirlock *k);

/* Removes the sign of an owner that was silent for so many seconds. True if it was removed, by us. */
bool dirlock_break(struct dirlock *k, const struct owner_sign *t, int64_t seconds);

/* True if another client may have removed our directory, empty from SINCE to NOW, as stale: what is there
   now may be a plain client's. */
bool dirlock_may_be_removed(const struct dirlock *k, int64_t since, int64_t now);

/* Removes our sign and, if that was the last, the directory. */
void dirlock_give_back(struct dirlock *k);

#endif
