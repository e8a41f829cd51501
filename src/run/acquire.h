/* SPDX-License-Identifier: MIT */
/* run/acquire.h - takes the locks of a run. */
#ifndef SEMLOCK_RUN_ACQUIRE_H
#define SEMLOCK_RUN_ACQUIRE_H

#include "run/run.h"

/* Take RUN's locks.  Returns what the command runs under; with LOCKS_NONE, RUN->outcome is filled
 * and all messages are printed. */
enum run_locks acquire(struct run *run);

#endif
