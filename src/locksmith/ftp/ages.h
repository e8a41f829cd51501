/* locksmith/ftp/ages.h - since when we have seen each token unchanged, on our own clock. This is how an owner
   that has gone silent is told: no clock of the server or of the owner has to agree with ours. */
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
	int64_t empty_since; /* the directory was there and empty ever since; NEVER if not */
};

void ages_forget(struct ages *s);

/* Takes note of a listing that had arrived at the moment now. */
void ages_update(struct ages *s, const struct listing *l, int64_t now);

/* The first token in l that had been silent for longer than it promised when l was asked for at the
   moment asked; NULL if none. */
const struct owner_token *ages_silent(
    const struct ages *s, const struct listing *l, int64_t asked);

#endif
