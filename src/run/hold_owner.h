/* SPDX-License-Identifier: MIT */
/* run/hold_owner.h - the process that a hold in the background is for: with its end, that ends. */
#ifndef SEMLOCK_RUN_HOLD_OWNER_H
#define SEMLOCK_RUN_HOLD_OWNER_H

#include <stdbool.h>
#include <sys/types.h>

#include "report/error.h"

struct hold_owner {
	pid_t pid;                  /* 0: none */
	unsigned long long started; /* ticks after boot; 0: not known */
	int end; /* a pidfd, readable at its end; -1: none, it has to be looked for */
};

/* Fill OWNER for the process PID, 0 for none.  Returns 0, or -1 with ERROR filled when there is no
 * such process. */
int hold_owner_find(struct hold_owner *owner, pid_t pid, struct error *error);

/* After how many ms OWNER has to be looked for; -1: poll(2) sees its end, or there is none. */
int hold_owner_poll_time(const struct hold_owner *owner);

/* Has OWNER ended?  Its PID may be another process's by now.  Never, if there is none. */
bool hold_owner_ended(const struct hold_owner *owner);

#endif
