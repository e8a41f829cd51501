/* SPDX-License-Identifier: MIT */
/* run/hold.h - --hold: no command runs; semlock holds the lock for its owner, the process that started it. */
#ifndef SEMLOCK_RUN_HOLD_H
#define SEMLOCK_RUN_HOLD_H

#include <stdbool.h>
#include <sys/types.h>

/* Before the wait: until hold_taken(), semlock ends as by SIGTERM when standard input is hung up or the
 * process OWNER (0: the parent) has ended.  Returns false, with a message, when there is no such process. */
bool hold_for(pid_t owner);

/* The lock is held: from now on, hold_until_end() alone ends semlock. */
void hold_taken(void);

/* The placeholder, in the command's place and with its environment: print "OK" on standard output, with
 * " slot=N" and " token=N" where the lock has them, and exit when standard input or the owner ends.  If OK
 * cannot be printed, the caller does not know of its lock: exit at once. */
void hold_until_end(void);

#endif
