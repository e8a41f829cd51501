/* SPDX-License-Identifier: MIT */
/* owners/who.h - --who: nothing is taken. */
#ifndef SEMLOCK_OWNERS_WHO_H
#define SEMLOCK_OWNERS_WHO_H

#include "cli/request.h"

/* Print the owners of each lock in REQUEST on standard output: a table for people, or JSON for programs.
 * Returns the exit status: 0 when all are free, EXIT_BUSY when one is held, or that of the last lock that could
 * not be looked at. */
int who(const struct request *request);

#endif
