/* run/acquire.h - taking the locks as the command line says, and saying what came of it. */
#ifndef SEMLOCK_RUN_ACQUIRE_H
#define SEMLOCK_RUN_ACQUIRE_H

#include "lock/lock.h"
#include "cli/request.h"

enum {
	ACQUIRED = -1,
	UNDER_ANCESTOR = -2 /* no lock was taken: an ancestor of this process holds it, and --nested was given */
};

/* Take the LOCKS of REQUEST.  Returns one of the above, or the exit status, and then every message has been
 * printed. */
int acquire(const struct request *request, struct lock *locks);

#endif
