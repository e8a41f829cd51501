/* locksmith/ftp/ages.h - since when each token has been unchanged, by our own clock: a silent owner is found
   without the clocks of the server and the owner. */
#ifndef SEMLOCK_LOCKSMITH_FTP_AGES_H
#define SEMLOCK_LOCKSMITH_FTP_AGES_H

#include "locksmith/ftp/listing.h"

#include <stdint.h>

struct age {
	char name[TOKEN_NAME];
	int64_t since;
};

struct ages {
	struct age seen[LISTING_MOST];
	size_t count;
	int64_t empty_since; /* since when the directory has been there and empty; NEVER: it is not */
};

void ages_forget(struct ages *s);

/* Adds a listing that had arrived at the moment now. */
void ages_update(struct ages *s, const struct listing *l, int64_t now);

/* The first token in l that was unchanged for longer than its ttl when l was requested, at the moment
   asked; NULL if none. */
const struct owner_token *ages_silent(
    const struct ages *s, const struct listing *l, int64_t asked);

#endif
