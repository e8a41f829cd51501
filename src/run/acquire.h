/* run/acquire.h - taking the locks as the command line says, and saying what came of it. */
#ifndef SEMLOCK_RUN_ACQUIRE_H
#define SEMLOCK_RUN_ACQUIRE_H

#include <stdbool.h>

#include "lock/lock.h"
#include "cli/request.h"

enum { ACQUIRED = -1 };

/* Take the LOCKS of REQUEST.  Returns ACQUIRED, or the exit status, and then every message has been printed.
 * *UNDER_ANCESTOR: no lock was taken, for an ancestor of this process holds it, and --nested was given. */
int acquire(const struct request *request, struct lock *locks, bool *under_ancestor);

#endif
