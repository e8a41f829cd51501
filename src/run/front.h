/* SPDX-License-Identifier: MIT */
/* run/front.h - a call that waits for a hold in the background (hold/detach.h): the first call,
 * which started the hold, or --resume.  It shows the wait, and prints OK; or WAITING, when its -w
 * is over and the place is kept.
 *
 *	             hears from the keeper   prints, and does
 *	first call   ID, WAITS ..., OK       OK or WAITING; sends ACK, receives 0, exits
 *	--resume     WAITS ..., OK           OK or WAITING; exits
 *
 * If the first call ends before it sends ACK, the keeper releases the hold, or the place, because
 * the caller does not know the ID.  The end of a --resume changes nothing. */
#ifndef SEMLOCK_RUN_FRONT_H
#define SEMLOCK_RUN_FRONT_H

#include "cli/request.h"

/* The first call: wait until the lock is held or refused, or -w is over.  KEEPER is a socket to the
 * keeper.  Returns the exit status, or dies as the holder did. */
int front_wait(const struct request *request, int keeper);

/* --resume: go on waiting for the hold REQUEST->resume.  Returns the exit status, and prints a
 * message unless the status is 0 or that of a busy lock. */
int front_resume(const struct request *request);

#endif
