/* SPDX-License-Identifier: MIT */
/* run/who.h - --who: prints the owners of locks; takes nothing. */
#ifndef SEMLOCK_RUN_WHO_H
#define SEMLOCK_RUN_WHO_H

#include <stdnoreturn.h>

#include "cli/request.h"

/* Print the owners of each lock in REQUEST on standard output, as a table for people or as JSON.
 * Ends the program: with 0 when all are free, EXIT_BUSY when one is held, or the worst status of
 * those that could not be looked at. */
noreturn void who(const struct request *request);

#endif
