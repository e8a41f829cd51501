/* owners/who.h - --who and --check: nothing is taken. */
#ifndef SEMLOCK_OWNERS_WHO_H
#define SEMLOCK_OWNERS_WHO_H

#include "cli/request.h"

/* Print the owners of each lock in REQUEST on standard output: a table for people, or JSON for programs.
 * Returns the exit status: 0 when all are free, EXIT_BUSY when one is held, or that of the last lock that could
 * not be looked at. */
int who(const struct request *request);

/* check.c: does a lock really exclude in this place?  Try each method of the kernel's and of files on a scratch
 * file beside the lock, which is left alone; or have the helper try what locks on a server rely on.  Print the
 * results, a line each.  Returns 0 when the method of REQUEST excludes, EXIT_UNAVAILABLE when it does not, or the
 * status of an error. */
int check(const struct request *request);

#endif
