/* ending.h - how it ended, as an exit status: for the command's own, and for semlock's trouble. */
#ifndef SEMLOCK_ENDING_H
#define SEMLOCK_ENDING_H

#include <stdnoreturn.h>

#include "command.h"
#include "lock.h"
#include "options.h"

/* The status for the command's ENDING.  Says why, if it never ran, and tells the event. */
int ending_status(const struct options *opt, const struct ending *ending);

/* Somebody who does not heed the lock has removed or replaced one of LOCKS, which we have let go:
 * another command may have run beside ours, and that is worth more than how ours ended.  Returns
 * what is to be made of STATUS, and has said so. */
int ending_if_lost(const struct options *opt, const struct lock *locks, int status);

/* If signal SIGNO, which semlock got as well, ended the command, and STATUS still says so: die of it,
 * without a core.  A shell stops its loop at Ctrl-C, and systemd takes TERM for a clean stop, only if
 * they see that death.  SIGNO 0: none.  Returns STATUS where the signal does not kill: as process 1 of
 * a container. */
int ending_as(int status, int signo);

/* WHY in words; by the name flock, where a descriptor or a lock call is to blame, in flock(1)'s. */
const char *ending_words(const struct options *opt, const struct why *why);

/* semlock itself cannot go on, for WHY: ends the process with the status for that. */
noreturn void ending_in_trouble(const struct options *opt, const struct why *why);

#endif
