/* owners/who.h - --who: a table for people, or JSON for programs, on standard output. */
#ifndef SEMLOCK_OWNERS_WHO_H
#define SEMLOCK_OWNERS_WHO_H

#include "cli/options.h"

/* Print the owners of each lock in REQUEST.  Returns the exit status: 0 when all are free, EXIT_BUSY
 * when one is held, or that of the last lock that could not be looked at. */
int who(const struct request *request);

#endif
