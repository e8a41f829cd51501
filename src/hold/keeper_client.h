/* SPDX-License-Identifier: MIT */
/* hold/keeper_client.h - what other calls ask of the keeper of a hold in the background (keeper.h).
 */
#ifndef SEMLOCK_HOLD_KEEPER_CLIENT_H
#define SEMLOCK_HOLD_KEEPER_CLIENT_H

#include <stdbool.h>
#include <sys/types.h>

#include "cli/request.h"
#include "lock/lock.h"
#include "owners/hold_id.h"
#include "report/error.h"
#include "sys/deadline.h"

/* A conversation with a keeper. */
struct keeper_call {
	int connection; /* no call on it sleeps */
	struct hold_id id;
	bool foreign; /* it is another user's, and root asks: it may say anything */
};

/* Send WORD (KEEPER_RELEASE, KEEPER_RESUME) and the name of REQUEST's first lock to the keeper of
 * the ID in TEXT, for ten seconds at most.  Returns 0 with CALL filled, or -1 with ERROR filled:
 * TEXT is no ID, its process has ended, does not listen, or is another user's. */
int keeper_call(const struct request *request, const char *text, const char *word,
    struct keeper_call *call, struct error *error);

/* Wait for the next message, until UNTIL, and for a minute at most; or ten seconds, if the keeper
 * is stopped then.  Returns 0, or -1 with ERROR filled. */
int keeper_await(const struct keeper_call *call, struct deadline until, struct error *error);

/* Read the keeper's ANSWER, a status and a text (keeper.h).  Returns the status, with *TEXT;
 * and with ERROR filled, unless it is 0.  It is one that semlock(1) lists, whatever ANSWER says. */
int keeper_answer(char *answer, char **text, struct error *error);

/* End the hold REQUEST->release of the first lock of REQUEST, and wait until the next one can
 * enter.  Returns the exit status, with a message unless it is 0: EXIT_LOST if the hold had ended
 * before. */
int release_hold(const struct request *request);

/* A hold in the background. */
struct own_hold {
	char id[HOLD_ID_SIZE];
	pid_t owner; /* the process that it is for; 0: none was found */
};

/* Is LOCK, all of it, held in the background for this process, or for an ancestor of it?  It is
 * asked of this user's keeper of LOCK's name and method.  Returns true with HOLD filled. */
bool own_hold_find(const struct lock *lock, struct own_hold *hold);

#endif
