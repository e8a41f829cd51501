/* run/result.h - how it ended, as an exit status: for the command's own, and for semlock's trouble. */
#ifndef SEMLOCK_RUN_RESULT_H
#define SEMLOCK_RUN_RESULT_H

#include <stdnoreturn.h>

#include "run/start.h"
#include "lock/lock.h"
#include "cli/options.h"

/* The status for the command's RESULT.  Says why, if it never ran, and tells the event. */
int result_status(const struct request *request, const struct result *result);

/* Somebody who does not heed the lock has removed or replaced one of LOCKS, which we have let go:
 * another command may have run beside ours, and that is worth more than how ours ended.  Returns
 * what is to be made of STATUS, and has said so. */
int result_if_lost(const struct request *request, const struct lock *locks, int status);

/* If signal SIGNO, which semlock got as well, ended the command, and STATUS still says so: die of it,
 * without a core.  A shell stops its loop at Ctrl-C, and systemd takes TERM for a clean stop, only if
 * they see that death.  SIGNO 0: none.  Returns STATUS where the signal does not kill: as process 1 of
 * a container. */
int ending_as(int status, int signo);

/* ERROR in words; by the name flock, where a descriptor or a lock call is to blame, in flock(1)'s. */
const char *ending_words(const struct request *request, const struct error *error);

/* semlock itself cannot go on, for ERROR: ends the process with the status for that. */
noreturn void result_of_error(const struct request *request, const struct error *error);

#endif
