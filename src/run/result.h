/* SPDX-License-Identifier: MIT */
/* run/result.h - what came of it: messages, events and exit statuses; how long the lock has been held. */
#ifndef SEMLOCK_RUN_RESULT_H
#define SEMLOCK_RUN_RESULT_H

#include "run/start.h"
#include "lock/lock.h"
#include "cli/request.h"

/* What messages call LOCK; the text may be overwritten by the next call. */
const char *messages_label(const struct request *request, const struct lock *lock);

/* LOCK is busy for REASON: write the event; say so, and who holds it, on a terminal or with --verbose, but never with
 * -q.  Returns the status for it. */
int result_of_busy(const struct request *request, const struct lock *lock, enum busy_reason reason);

/* The lock is held from now on. */
void held_begins(void);

/* For how long the lock has been held, in ns; 0 before held_begins(). */
int64_t held_time(void);

/* The command has ended, and all signals are blocked: wait until the lock has been held for DURATION ns,
 * or a signal asks semlock to end. */
void held_at_least(int64_t duration);

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
