/* SPDX-License-Identifier: MIT */
/* run/supervise.h - while the command runs: signals are passed on, stops followed, limits kept. */
#ifndef SEMLOCK_RUN_SUPERVISE_H
#define SEMLOCK_RUN_SUPERVISE_H

#include "run/start.h"
#include "run/subreaper.h"

/* Wait until COMMAND, which runs, has ended; COMMAND->state says whether it still has to be waited
 * for.  All signals are blocked since before its start: those to semlock go to the command, and
 * when the keyboard stops it, semlock stops too.  If SUBREAPER is killed, all that the command has
 * started is ended.  Returns how it ended; ENDED_NOT_RUN where only a signal brings the errno of
 * its exec. */
struct result supervise(struct command *command, struct subreaper *subreaper);

#endif
