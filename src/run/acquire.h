/* SPDX-License-Identifier: MIT */
/* run/acquire.h - the locks of a run are taken. */
#ifndef SEMLOCK_RUN_ACQUIRE_H
#define SEMLOCK_RUN_ACQUIRE_H

#include "run/run.h"

/* Take RUN's locks.  Returns what it runs under; LOCKS_NONE with RUN->outcome filled, and every
 * message printed. */
enum run_locks acquire(struct run *run);

#endif
