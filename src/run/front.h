/* SPDX-License-Identifier: MIT */
/* run/front.h - the call that waits for a hold in the background (detach.h): the first one, which
 * has started that, or --resume.  It shows the wait, and prints OK, or WAITING when its -w is over
 * and the place is kept.
 *
 *	first call	WAITS ... OK -> prints it, ACK, KNOWN; or the time is up: KEEP, WAITING ->
 *			prints that, ACK, KNOWN
 *	--resume	WAITS ... OK -> prints it;      or the time is up: prints WAITING
 *
 * The end of the first call before its ACK ends the hold, or the place: the caller does not know
 * the ID.  The end of a --resume changes nothing. */
#ifndef SEMLOCK_RUN_FRONT_H
#define SEMLOCK_RUN_FRONT_H

#include "cli/request.h"

struct front {
	const struct request *request;
	int keeper; /* a socket to the keeper */
	/* what the holder writes on standard error and on its status_fd; -1: none */
	int errors, events;
};

/* Wait until the lock is held, or is not to be had, or the time is up.  Returns the exit status, or
 * dies as the holder did. */
int front_wait(const struct front *front);

/* --resume: wait on for the hold REQUEST->resume.  Returns the exit status, with a message if it
 * is neither 0 nor that of a busy lock. */
int front_resume(const struct request *request);

#endif
