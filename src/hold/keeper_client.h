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
	int connection; /* nonblocking */
	struct hold_id id;
	bool foreign; /* the keeper is another user's, and we are root: do not trust what it says */
};

/* Connect to the keeper of the hold whose ID is TEXT, in at most ten seconds.  Send it WORD
 * (KEEPER_RELEASE, KEEPER_RESUME) and the name of REQUEST's first lock.  Returns 0 with CALL
 * filled, or -1 with ERROR filled: TEXT is no ID, or the keeper has ended, does not answer, or is
 * another user's. */
int keeper_call(const struct request *request, const char *text, const char *word,
    struct keeper_call *call, struct error *error);

/* Wait for the keeper's next message, until UNTIL, but for a minute at most.  Checks every ten
 * seconds whether the keeper is stopped; if so, fails at once.  Returns 0, or -1 with ERROR
 * filled. */
int keeper_await(const struct keeper_call *call, struct deadline until, struct error *error);

/* Read the keeper's ANSWER, a status and a text (keeper.h).  Returns the status, with *TEXT set,
 * and with ERROR filled unless the status is 0.  A status that no keeper should send becomes
 * EXIT_UNAVAILABLE. */
int keeper_answer(char *answer, char **text, struct error *error);

/* End the hold whose ID is REQUEST->release, if REQUEST's first lock is one of its locks, and wait
 * until another process can take the lock.  Returns the exit status, after a message unless it is
 * 0.  EXIT_LOST: the hold had already ended. */
int release_hold(const struct request *request);

/* A hold in the background. */
struct own_hold {
	char id[HOLD_ID_SIZE];
	pid_t owner; /* the process that owns it; 0: none was found */
};

/* Is all of LOCK held in the background for this process, or for an ancestor of it?  Asks this
 * user's keepers, which compare LOCK's name and method.  Returns true with HOLD filled. */
bool own_hold_find(const struct lock *lock, struct own_hold *hold);

#endif
