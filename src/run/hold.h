/* SPDX-License-Identifier: MIT */
/* run/hold.h - --hold: no command runs; semlock holds the lock for its owner, the process that
 * started it or that was named. */
#ifndef SEMLOCK_RUN_HOLD_H
#define SEMLOCK_RUN_HOLD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdnoreturn.h>
#include <sys/types.h>

#include "report/error.h"
#include "run/caller_fds.h"
#include "run/caller_lines.h"
#include "run/hold_owner.h"

/* A child of the owner may keep the other end of standard input open long after the owner's end:
 * the end of input is not enough. */
struct hold {
	struct hold_owner owner; /* none: outside this PID namespace, its end cannot be seen */
	atomic_bool taken;
	/* --detach: the process that --who names, where that is not OWNER; 0: none */
	pid_t shown;
	/* --detach: what the placeholder closes as it is forked; NULL */
	struct caller_fds *caller;
	struct caller_lines lines; /* --ttl */
};

/* Before the wait: until hold_taken(), semlock ends as by SIGTERM when standard input is hung up or
 * the process OWNER (0: the parent) has ended; with a TTL (ns; 0: none) also when no line has come
 * for so long, or "release".  HOLD must stay where it is.  Returns 0, or -1 with ERROR filled when
 * there is no such process, or no line can come. */
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
