/* run/acquire.h - taking the locks as the command line says, and telling who wants to know. */
#ifndef SEMLOCK_RUN_ACQUIRE_H
#define SEMLOCK_RUN_ACQUIRE_H

#include <stdbool.h>

#include "lock/lock.h"
#include "cli/options.h"

enum { ACQUIRED = -1 };

/* Take the LOCKS of REQUEST.  Returns OBTAINED, or the status to exit with, and then all has
 * been said.  *UNDER_ANCESTOR: nothing was taken, for an ancestor holds it already, and
 * --nested was given. */
int acquire(const struct request *request, struct lock *locks, bool *under_ancestor);

/* What LOCK is called where people read it. */
const char *acquire_label(const struct request *request, const struct lock *lock);

#endif
