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

/* --ttl: the lines on standard input by which the caller says that it is there.  Its end alone
 * proves nothing: a connection may end while the caller goes on. */
struct caller_lines {
	int64_t time;        /* ns in which a line has to come; 0: none has to */
	struct deadline due; /* of the next one; never, if TIME is 0 */
	char line[256];      /* what has come of it; the rest of a longer one is dropped */
	size_t length;
};

/* A child of the owner may keep the other end of standard input open long after the owner's end:
 * the end of input is not enough. */
struct hold {
	struct watched owner; /* none: outside this PID namespace, its end cannot be seen */
	bool taken;           /* the lock is held; changed and read under a mutex */
	/* --detach: the process to show in --who, if it is not OWNER; 0: none */
	pid_t shown_owner;
	const char *id; /* --detach: its own; else NULL */
	/* --detach: what the placeholder closes as it is forked; NULL */
	struct caller_fds *caller;
	struct caller_lines lines;
};

/* Before the wait: until hold_taken(), semlock ends as by SIGTERM when standard input is hung up or
 * the process OWNER (0: the parent) has ended; with a TTL (ns; 0: none) also when no line has come
 * for that long, or "release".  HOLD must stay where it is.  Returns 0, or -1 with ERROR filled if
 * no such process exists, or no line can come. */
int hold_for(struct hold *hold, pid_t owner, int64_t ttl, struct error *error);

/* --detach: the wait for lock number I of the request begins; the front is to show it. */
void hold_waits(unsigned i);

/* The lock is held: from now on, hold_until_end() alone ends semlock. */
void hold_taken(struct hold *hold);

/* The placeholder, in the command's place and with its environment: print "OK" on standard output,
 * with " slot=N" and " token=N" where the lock has them, and exit when standard input or the owner
 * ends.  If OK cannot be printed, the caller does not know of its lock: exit at once.  With a TTL
 * the caller's lines decide: "release" or silence ends it, and after any other end it stays for the
 * TTL. */
noreturn void hold_until_end(struct hold *hold);

/* The placeholder has been killed: tell the caller, by the end of standard output, that nothing is
 * echoed any more. */
void hold_is_orphaned(void);

#endif
