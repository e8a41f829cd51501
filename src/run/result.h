/* run/result.h - exit statuses: of the command's end, and of an error of semlock's own. */
#ifndef SEMLOCK_RUN_RESULT_H
#define SEMLOCK_RUN_RESULT_H

#include "run/start.h"
#include "lock/lock.h"
#include "cli/request.h"

/* The status for the command's RESULT.  Writes the event; a message too, if the command never ran. */
int result_status(const struct request *request, const struct result *result);

/* STATUS; or EXIT_LOST, with an event and a message, if one of the released LOCKS had been removed or
 * replaced by a program that ignores it: another command may have run beside this one. */
int result_if_lost(const struct request *request, const struct lock *locks, int status);

/* If STATUS still says that signal SIGNO, which semlock received too, ended the command: die of SIGNO,
 * without a core.  A shell ends its loop at Ctrl-C, and systemd takes SIGTERM for a clean stop, only if
 * semlock dies of it too.  Returns STATUS if SIGNO is 0 or does not kill, as for process 1 of a container. */
int result_die_of(int status, int signo);

/* Print ERROR of LOCK (NULL: of the lock that was named first), and write the event.  Returns the status
 * for it. */
int result_of_error(const struct request *request, const struct lock *lock, const struct error *error);

#endif
