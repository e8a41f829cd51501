/* SPDX-License-Identifier: MIT */
/* run/supervise.h - while the command runs: signals are passed on, stops followed, limits kept. */
#ifndef SEMLOCK_RUN_SUPERVISE_H
#define SEMLOCK_RUN_SUPERVISE_H

#include "run/start.h"
#include "run/subreaper.h"

/* Wait until COMMAND, which runs, has ended; COMMAND->state then says whether it must still be
 * reaped.  The caller has blocked all signals since before the start.  Pass those to semlock on to
 * the command, and when the keyboard stops the command, stop semlock too.  If SUBREAPER is killed,
 * end all that the command has started.  Returns how the command ended; ENDED_NOT_RUN where a
 * signal brought the errno of its exec. */
struct result supervise(struct command *command, struct subreaper *subreaper);

#endif
