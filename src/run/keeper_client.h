/* SPDX-License-Identifier: MIT */
/* run/keeper_client.h - what other calls ask of the keeper of a hold in the background (keeper.h).
 */
#ifndef SEMLOCK_RUN_KEEPER_CLIENT_H
#define SEMLOCK_RUN_KEEPER_CLIENT_H

#include <sys/types.h>

#include "cli/request.h"
#include "lock/lock.h"
#include "owners/hold_id.h"
#include "report/error.h"

/* Connect to the keeper of the hold TEXT, which is ID; each call on the connection takes at most so
 * many SECONDS, 0: any time, but to connect 10.  Returns a connection, or -1 with ERROR filled:
 * ERROR_LOST, the hold has ended. */
int keeper_connect(const char *text, const struct hold_id *id, int seconds, struct error *error);

/* Send WORD (KEEPER_RELEASE, KEEPER_RESUME) and the name of REQUEST's first lock to the keeper of
 * ID.  Returns the connection, on which it answers, or -1 with ERROR filled: ID is none, its
 * process has ended, or is another user's. */
int keeper_call(const struct request *request, const char *id, const char *word,
    struct error *error);

/* Fill ERROR with the keeper's ANSWER, a status and a text (keeper.h).  Returns 0 if the status is,
 * and then the text is in *TEXT; else -1. */
int keeper_answer(char *answer, char **text, struct error *error);

/* A hold in the background. */
struct own_hold {
	char id[HOLD_ID_SIZE];
	pid_t owner; /* the process that it is for; 0: none was found */
};

/* Is LOCK, all of it, held in the background for this process, or for an ancestor of it?  It is
 * asked of this user's keeper of LOCK's name and method.  Returns true with HOLD filled. */
bool own_hold_find(const struct lock *lock, struct own_hold *hold);

#endif
