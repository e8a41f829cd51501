/* SPDX-License-Identifier: MIT */
/* hold/hold.h - --hold: no command runs.  semlock holds the lock for an owner: the process that
 * started semlock, or the one that --hold=PID names. */
#ifndef SEMLOCK_HOLD_HOLD_H
#define SEMLOCK_HOLD_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>
#include <sys/types.h>

#include "hold/caller_fds.h"
#include "report/error.h"
#include "sys/deadline.h"
#include "sys/waiting.h"

/* --hold --ttl: the lines on standard input with which the caller shows that it is alive.  The end
 * of input alone proves nothing: a connection may end while the caller goes on. */
struct caller_lines {
	/* ns within which the next line must come; 0: no --ttl, no line must come */
	int64_t time;
	struct deadline due; /* when the next line is overdue; never, if TIME is 0 */
	char line[256];      /* what has been read of the next line; what does not fit is dropped */
	size_t length;
};

/* A hold and its owner.  The end of standard input is not enough to notice the owner's end, because
 * a child of the owner may keep the other end open long after that: so watch the owner, too. */
struct hold {
	/* PID 0: the owner is outside this PID namespace, and its end cannot be seen */
	struct watched owner;
	bool taken; /* the lock is held; changed and read under a mutex */
	/* --detach: the process that --who shows as the owner; 0: OWNER */
	pid_t shown_owner;
	const char *id; /* --detach: the hold's ID; else NULL */
	/* --detach: the caller's descriptors, which the placeholder closes; else NULL */
	struct caller_fds *caller;
	struct caller_lines lines;
};

/* Begin a hold, before the wait for the lock.  Starts a thread that, until hold_taken(), ends
 * semlock as SIGTERM would: when standard input is hung up, or the process OWNER (0: the parent)
 * has ended.  With a TTL (ns; 0: none) the thread also ends semlock when no line has come for that
 * long, or when the line "release" comes.  HOLD must stay where it is.  Returns 0, or -1 with ERROR
 * filled: OWNER does not exist, the input has ended, or the thread cannot be started. */
int hold_for(struct hold *hold, pid_t owner, int64_t ttl, struct error *error);

/* --detach: tell the keeper that the wait for the request's lock number I begins, so that the front
 * shows the wait. */
void hold_waits(unsigned i);

/* The lock is held: the thread of hold_for() ends semlock no more.  From now on, hold_until_end()
 * decides when semlock ends. */
void hold_taken(struct hold *hold);

/* Be the placeholder, in the command's place and with its environment: print "OK" on standard
 * output, with " slot=N" and " token=N" where the lock has them, and exit when standard input ends,
 * or the owner does.  If OK cannot be printed, exit at once, because the caller does not know of
 * its lock.  With a TTL, exit on the line "release", or when no line comes in time; if standard
 * input or the owner ends first, keep the lock for the TTL, then exit. */
noreturn void hold_until_end(struct hold *hold);

/* Nothing is echoed any more, because the placeholder was killed or keeps the lock for the TTL:
 * close standard input and output, so that the caller sees their end. */
void hold_is_orphaned(void);

#endif
