/* SPDX-License-Identifier: MIT */
/* run/supervise.h - while the command runs: passes signals on, follows stops, enforces limits. */
#ifndef SEMLOCK_RUN_SUPERVISE_H
#define SEMLOCK_RUN_SUPERVISE_H

#include "run/start.h"
#include "run/subreaper.h"

/* Wait until COMMAND, which runs, has ended; COMMAND->state then says whether it must still be
 * reaped.  The caller has blocked all signals since before the start.  Pass the signals that
 * semlock receives on to the command.  When the keyboard stops the command, stop semlock too.  If
 * SUBREAPER is killed, end all that the command has started.  Returns how the command ended:
 * ENDED_NOT_RUN if a signal reported that its exec failed. */
struct result supervise(struct command *command, struct subreaper *subreaper);

#endif
