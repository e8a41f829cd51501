/* SPDX-License-Identifier: MIT */
/* locksmith/ftp/listing.h - what is in a lock directory: names out of a server's answer, signs of
 * owners among them, and the verdict.  No I/O. */
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
 * The name says all about the holder: no file is written, and renaming or removing exactly this
 * name is a compare-and-swap. */

#define SIGN_NAME 200 /* longest name, with its '\0' */

struct owner_sign {
	unsigned int ttl;   /* seconds; the owner renames the sign within them */
	unsigned long beat; /* counts up with each heartbeat */
	char nonce[17];     /* 16 hexadecimal digits */
	long pid;
	char host[65];
	char name[SIGN_NAME];
	int64_t since; /* in a listing: unchanged since then, see listing_note_ages() */
};

/* Fill a fresh sign: a new nonce, beat 0, this host, and its name. */
void sign_make(struct owner_sign *sign, unsigned int ttl, long pid);

/* Set the name from the other fields, after beat was changed. */
void sign_name(struct owner_sign *sign);

/* Parse a name.  Returns false if it is no sign's: then *sign is undefined. */
bool sign_parse(const char *name, struct owner_sign *sign);

/* ---- listings ---- */

#define LISTING_MOST 64 /* signs; a directory with more is busy */

struct listing {
	struct owner_sign sign[LISTING_MOST];
	size_t signs;
	size_t foreign; /* entries that are no signs */
	/* since when the directory has been there and empty; NEVER: it is not */
	int64_t empty_since;
};

void listing_clear(struct listing *listing);

/* A listing_name: adds an entry's name to DATA, a struct listing; "." and ".." are no entries. */
void listing_add(void *data, const char *name);

bool listing_empty(const struct listing *listing);

/* The sign called NAME, or NULL; ignores case, as some servers do. */
const struct owner_sign *listing_find(const struct listing *listing, const char *name);

/* Fill in since when each sign of LISTING has been unchanged, and since when LISTING has been
 * empty.  BEFORE is the previous look's listing; NOW, by our own clock, is when LISTING had
 * arrived: so a silent owner is found without the clocks of the server and the owner. */
void listing_note_ages(struct listing *listing, const struct listing *before, int64_t now);

/* The first sign that was unchanged for longer than its ttl when LISTING was requested, at the
 * moment ASKED; NULL if none. */
const struct owner_sign *listing_silent(const struct listing *listing, int64_t asked);

/* True if the owner of the sign MINE holds the lock: its sign is in the directory, and nothing
 * else. */
bool listing_holds(const struct listing *listing, const struct owner_sign *mine);

/* ---- the text of a server ---- */

/* Is called with DATA for each name. */
typedef void (*listing_name)(void *data, const char *name);

/* Call EACH with every name in REPLY, the text of a reply to STAT: a first and a last line that
 * begin with the reply's number, and between them lines as ls -l prints them, or bare names. */
void listing_of_stat(const char *reply, listing_name each, void *data);

/* The same for NLST: a name on each line, maybe with its directory before it. */
void listing_of_names(const char *body, listing_name each, void *data);

/* Find "modify=YYYYMMDDHHMMSS" in the reply to MLST: seconds since 1970.  Returns 0, or -1 if there
 * is none. */
int listing_modified(const char *reply, int64_t *seconds);

#endif
