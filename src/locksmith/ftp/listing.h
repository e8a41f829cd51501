/* SPDX-License-Identifier: MIT */
/* locksmith/ftp/listing.h - reads a server's listing of a lock directory: the names in it, the
 * owners' signs among them, and who holds the lock.  No I/O. */
#ifndef SEMLOCK_LOCKSMITH_FTP_LISTING_H
#define SEMLOCK_LOCKSMITH_FTP_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- signs ----
 *
 * A holder marks a lock directory as its own by making an empty directory in it, with this name:
 *
 *   sl1.x.<ttl>.<beat>.<nonce>.<pid>.<host>
 *
 * The name says all about the holder, so no file is written.  To rename or remove exactly this name
 * is a compare-and-swap: it fails if the name has changed. */

#define SIGN_NAME 200 /* longest name, with its '\0' */

struct owner_sign {
	unsigned int ttl;   /* in seconds; a living owner renames the sign at least this often */
	unsigned long beat; /* counts up with each heartbeat */
	char nonce[17];     /* 16 hexadecimal digits */
	long pid;
	char host[65];
	char name[SIGN_NAME];
	/* in a listing: the sign has been unchanged since then, see listing_note_ages() */
	int64_t since;
};

/* Fill a fresh sign: a new nonce, beat 0, this host, and its name. */
void sign_make(struct owner_sign *sign, unsigned int ttl, long pid);

/* Set the name from the other fields, after beat was changed. */
void sign_name(struct owner_sign *sign);

/* Parse NAME into *SIGN.  Returns false if it is not the name of a sign: then *SIGN is
 * undefined. */
bool sign_parse(const char *name, struct owner_sign *sign);

/* ---- listings ---- */

#define LISTING_MOST 64 /* a listing holds this many signs; a directory with more of them is busy */

struct listing {
	struct owner_sign sign[LISTING_MOST];
	size_t signs;
	size_t foreign; /* how many entries are no signs */
	/* since when the directory has existed and been empty; NEVER: it has entries, or is
	 * absent */
	int64_t empty_since;
};

void listing_clear(struct listing *listing);

/* A callback (listing_name): add the entry NAME to DATA, a struct listing.  Ignores "." and
 * "..". */
void listing_add(void *data, const char *name);

bool listing_empty(const struct listing *listing);

/* The sign called NAME, or NULL; ignores case, as some servers do. */
const struct owner_sign *listing_find(const struct listing *listing, const char *name);

/* Fill in since when each sign of LISTING has been unchanged, and since when LISTING has been
 * empty.  BEFORE is the previous look's listing.  NOW is when LISTING arrived, by our own clock: so
 * a silent owner is found whatever the clocks of the server and of the owner say. */
void listing_note_ages(struct listing *listing, const struct listing *before, int64_t now);

/* The first sign that was already unchanged for longer than its ttl at ASKED, the moment when
 * LISTING was requested; NULL: there is none. */
const struct owner_sign *listing_silent(const struct listing *listing, int64_t asked);

/* True if the owner of the sign MINE holds the lock: the directory contains this sign, and nothing
 * else. */
bool listing_holds(const struct listing *listing, const struct owner_sign *mine);

/* ---- the text of a server ---- */

/* A callback for each NAME in a listing; DATA is the caller's. */
typedef void (*listing_name)(void *data, const char *name);

/* Call EACH with every name in REPLY, the text of a reply to STAT: a first and a last line that
 * begin with the reply's number, and between them lines as ls -l prints them, or bare names. */
void listing_of_stat(const char *reply, listing_name each, void *data);

/* The same for the reply to NLST: a name on each line, maybe with its directory before it. */
void listing_of_names(const char *body, listing_name each, void *data);

/* Find "modify=YYYYMMDDHHMMSS" in REPLY, to MLST, as seconds since 1970.  Returns 0, or -1: not
 * found. */
int listing_modified(const char *reply, int64_t *seconds);

#endif
