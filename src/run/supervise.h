/* run/supervise.h - while the command runs: signals are passed on, stops are followed, its time is kept. */
#ifndef SEMLOCK_RUN_SUPERVISE_H
#define SEMLOCK_RUN_SUPERVISE_H

#include <signal.h>
#include <sys/types.h>

#include "run/start.h"

/* Stay until COMMAND, running as process PID, has ended.  ALL signals are blocked, and one of
 * SIGCHLD is not lost; those that come to us go to the command, and when it is stopped from
 * the keyboard, so are we.  Returns how it ended: by itself or by a signal, and whether that signal
 * came to us, too; or that it could not be run, where that is only known by now. */
struct result supervise(const struct command *command, pid_t pid, const sigset_t *all);

#endif
