/* SPDX-License-Identifier: MIT */
/* run/keeper_client.h - what other calls ask of the keeper of a hold in the background (keeper.h).
 */
#ifndef SEMLOCK_RUN_KEEPER_CLIENT_H
#define SEMLOCK_RUN_KEEPER_CLIENT_H

#include <sys/types.h>

#include "lock/lock.h"
#include "owners/hold_id.h"
#include "report/error.h"

/* Connect to the keeper of the hold TEXT, which is ID; each call on the connection takes at most so
 * many SECONDS, 0: any time.  Returns a connection, or -1 with ERROR filled: ERROR_LOST, the hold
 * has ended. */
int keeper_connect(const char *text, const struct hold_id *id, int seconds, struct error *error);

/* A hold in the background. */
struct own_hold {
	char id[HOLD_ID_SIZE];
	pid_t owner; /* the process that it is for; 0: none was found */
};

/* Is LOCK, all of it, held in the background for this process, or for an ancestor of it?  It is
 * asked of this user's keeper of LOCK's name and method.  Returns true with HOLD filled. */
bool own_hold_find(const struct lock *lock, struct own_hold *hold);

#endif
