/* SPDX-License-Identifier: MIT */
/* hold/hold.h - --hold: no command runs; semlock holds the lock for its owner, the process that
 * started it or that was named. */
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

/* --ttl: the lines on standard input by which the caller says that it is there.  The end of input
 * alone proves nothing: a connection may end while the caller goes on. */
struct caller_lines {
	int64_t time;        /* ns in which a line has to come; 0: none has to */
	struct deadline due; /* of the next one; never, if TIME is 0 */
	char line[256];      /* what has been read of it; the rest of a longer one is dropped */
	size_t length;
};

/* A child of the owner may keep the other end of standard input open long after the owner's end: so
 * the end of input is not enough, and the owner is watched, too. */
struct hold {
	struct watched owner; /* none: outside this PID namespace, its end cannot be seen */
	bool taken;           /* the lock is held; changed and read under a mutex */
	/* --detach: the process to show in --who, if it is not OWNER; 0: none */
	pid_t shown_owner;
	const char *id; /* --detach: the hold's ID; else NULL */
	/* --detach: what the placeholder closes as it is forked; NULL */
	struct caller_fds *caller;
	struct caller_lines lines;
};

/* Called before the wait.  Until hold_taken(), a thread ends semlock as SIGTERM would when standard
 * input is hung up or the process OWNER (0: the parent) has ended; with a TTL (ns; 0: none) also
 * when no line has come for that long, or when the line "release" comes.  HOLD must stay where it
 * is.  Returns 0, or -1 with ERROR filled: no such process exists, no line can come, or the thread
 * cannot be started. */
int hold_for(struct hold *hold, pid_t owner, int64_t ttl, struct error *error);

/* --detach: the wait for lock number I of the request begins; the front is to show it. */
void hold_waits(unsigned i);

/* The lock is held: from now on, hold_until_end() alone ends semlock. */
void hold_taken(struct hold *hold);

/* The placeholder, in the command's place and with its environment: print "OK" on standard output,
 * with " slot=N" and " token=N" where the lock has them, and exit when standard input or the owner
 * ends.  If OK cannot be printed, the caller does not know of its lock: exit at once.  With a TTL
 * the caller's lines decide: on "release" or silence the placeholder exits; after any other end it
 * keeps the lock for the TTL. */
noreturn void hold_until_end(struct hold *hold);

/* Nothing is echoed any more, because the placeholder was killed or keeps the lock for the TTL:
 * close standard input and output, so that the caller sees their end. */
void hold_is_orphaned(void);

#endif
