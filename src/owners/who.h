/* owners/who.h - --who: a table for people, or JSON for programs, on standard output. */
#ifndef SEMLOCK_OWNERS_WHO_H
#define SEMLOCK_OWNERS_WHO_H

#include "cli/options.h"

/* Print who holds each of the locks in REQUEST and who waits for them.  Returns the exit
 * status: 0 when all are free, EXIT_BUSY when one is held, or that of the trouble with the
 * last one that could not be looked at. */
int who(const struct request *request);

#endif
