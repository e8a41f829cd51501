/* SPDX-License-Identifier: MIT */
/* run/supervise.h - while the command runs: signals are passed on, stops (Ctrl-Z) are followed, the limit
 * of --run-timeout is kept. */
#ifndef SEMLOCK_RUN_SUPERVISE_H
#define SEMLOCK_RUN_SUPERVISE_H

#include <sys/types.h>

#include "run/start.h"

/* Wait until COMMAND, process PID, has ended.  All signals are blocked since before its start: those to
 * semlock go to the command, and when the keyboard stops it, semlock stops too.  Returns how it ended;
 * ENDED_NOT_RUN where only a signal brings the errno of its exec. */
struct result supervise(const struct command *command, pid_t pid);

#endif
