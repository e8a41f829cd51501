/* SPDX-License-Identifier: MIT */
/* locksmith/ftp/owner_sign.h - the name of the empty directory by which a holder marks a lock directory as its own.

     sl1.x.<ttl>.<beat>.<nonce>.<pid>.<host>

   All about the holder is in the name: no file is written, and renaming or removing exactly this name
   is a compare-and-swap. */
#ifndef SEMLOCK_LOCKSMITH_FTP_OWNER_SIGN_H
#define SEMLOCK_LOCKSMITH_FTP_OWNER_SIGN_H

#include <stdbool.h>
#include <stdint.h>

#define SIGN_NAME 200 /* longest name, with its '\0' */

struct owner_sign {
	unsigned int ttl;   /* seconds; the owner renames the sign within them */
	unsigned long beat; /* counts up with each heartbeat */
	char nonce[17];	    /* 16 hexadecimal digits */
	long pid;
	char host[65];
	char name[SIGN_NAME];
	int64_t since;	    /* in a listing: unchanged since then, see listing_note_ages() */
};

/* Fills in a fresh sign: a new nonce, beat 0, this host, and its name. */
void sign_make(struct owner_sign *t, unsigned int ttl, long pid);

/* Sets the name from the other fields, after beat was changed. */
void sign_name(struct owner_sign *t);

/* Parses a name. False if it is no sign's: then *t is undefined. */
bool sign_parse(const char *name, struct owner_sign *t);

#endif
