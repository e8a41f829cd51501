/* SPDX-License-Identifier: MIT */
/* locksmith/ftp/owner_token.h - the name of the empty directory by which a holder marks a lock directory as its own.

     sl1.x.<ttl>.<beat>.<nonce>.<pid>.<host>

   All about the holder is in the name: no file is written, and renaming or removing exactly this name
   is a compare-and-swap. */
#ifndef SEMLOCK_LOCKSMITH_FTP_OWNER_TOKEN_H
#define SEMLOCK_LOCKSMITH_FTP_OWNER_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#define TOKEN_NAME 200 /* longest name, with its '\0' */

struct owner_token {
	unsigned int ttl;   /* seconds; the owner renames the token within them */
	unsigned long beat; /* counts up with each heartbeat */
	char nonce[17];	    /* 16 hexadecimal digits */
	long pid;
	char host[65];
	char name[TOKEN_NAME];
	int64_t since;	    /* in a listing: unchanged since then, see listing_note_ages() */
};

/* Fills in a fresh token: a new nonce, beat 0, this host, and its name. */
void token_make(struct owner_token *t, unsigned int ttl, long pid);

/* Sets the name from the other fields, after beat was changed. */
void token_name(struct owner_token *t);

/* Parses a name. False if it is no token's: then *t is undefined. */
bool token_parse(const char *name, struct owner_token *t);

#endif
