/* locksmith/ftp/owner_token.h - the name of the empty directory by which a holder marks a lock directory as its own.

     sl1.<mode>.<ttl>.<beat>.<nonce>.<pid>.<host>      mode: x exclusive, s shared, n<slot> a slot

   Everything about the holder is in the name, so nothing has to be written, and renaming or
   removing exactly this name is a compare-and-swap. */
#ifndef SEMLOCK_LOCKSMITH_FTP_OWNER_TOKEN_H
#define SEMLOCK_LOCKSMITH_FTP_OWNER_TOKEN_H

#include <stdbool.h>

#define TOKEN_NAME 200 /* longest name, with its '\0' */

struct owner_token {
	char mode;	    /* 'x', 's' or 'n' */
	unsigned int slot;  /* only with 'n' */
	unsigned int ttl;   /* seconds within which the owner promises to beat */
	unsigned long beat; /* counts up with each heartbeat */
	char nonce[17];	    /* 16 hexadecimal digits */
	long pid;
	char host[65];
	char name[TOKEN_NAME];
};

/* Fills in a fresh token: a new nonce, beat 0, this host, and its name. */
void token_make(struct owner_token *t, char mode, unsigned int slot, unsigned int ttl, long pid);

/* Gives t another slot or beat: the name follows the fields. */
void token_name(struct owner_token *t);

/* Takes a name apart. true, or false if it is no token's: then *t is not to be looked at. */
bool token_parse(const char *name, struct owner_token *t);

/* True if the two names are the same; some servers do not keep upper and lower case apart. */
bool token_same(const char *a, const char *b);

#endif
