/* methods/token.h - the token of the method rename, wherever it is. */
#ifndef SEMLOCK_METHOD_TOKEN_H
#define SEMLOCK_METHOD_TOKEN_H

#include "methods/namefile.h"

/* The name that the token has while the lock is held, into NAME, which is returned. */
const char *token_held_name(const struct namefile *file, char name[NAME_SIZE]);

/* Open it under whichever name it has.  -1 with errno set: ENOENT if there is none. */
int token_open(const struct namefile *file);

/* --init: make it, unless there is one.  Returns 0, or -1 with WHY filled. */
int token_make(struct lock *lock, struct why *why);

#endif
