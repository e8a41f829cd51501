/* SPDX-License-Identifier: MIT */
/* run/acquire.h - taking the locks as the command line says, and saying what came of it. */
#ifndef SEMLOCK_RUN_ACQUIRE_H
#define SEMLOCK_RUN_ACQUIRE_H

#include "lock/lock.h"
#include "cli/request.h"

struct acquired {
	enum {
		ACQUIRED_LOCKS,
		ACQUIRED_BY_INHERITANCE, /* none was taken: what this process has inherited holds them (--nested) */
		ACQUIRED_NOTHING         /* every message has been printed: end with STATUS */
	} how;
	int status;
};

/* Take the LOCKS of REQUEST. */
struct acquired acquire(const struct request *request, struct lock *locks);

#endif
