/* SPDX-License-Identifier: MIT */
/* run/run.h - one run, in the order of main.c: a job is made of the request, its locks are taken,
 * its command runs;
 * --hold and --log beside them. */
#ifndef SEMLOCK_RUN_RUN_H
#define SEMLOCK_RUN_RUN_H

#include <stddef.h>

#include "run/start.h"
#include "lock/lock.h"
#include "cli/request.h"

struct job {
	const struct request *request;
	struct lock *locks; /* as many as REQUEST names */
	struct command command;
	struct child child;
	int slot; /* SEMLOCK_SLOT, for --log: the release forgets it; -1: none */
	/* the signal that ended the command, if semlock has received it too; else 0 */
	int died_of;
};

/* Make JOB of REQUEST; both must stay where they are.  Returns 0, or -1 with ERROR filled when
 * there is no memory. */
int job_make(struct job *job, const struct request *request, struct error *error);

/* -u: unlock the caller's descriptor, or open the file (-u FILE COMMAND, as flock).  Returns 0, or
 * -1 with ERROR filled. */
int job_unlock(struct job *job, struct error *error);

struct acquired {
	enum {
		ACQUIRED_LOCKS,
		/* none was taken: what this process has inherited holds them (--nested) */
		ACQUIRED_BY_INHERITANCE,
		ACQUIRED_NOTHING /* every message has been printed: end with STATUS */
	} how;
	int status;
};

/* Take the locks of JOB. */
struct acquired acquire(struct job *job);

/* Put the locks into the command's environment, and fork its process, up to its start barrier: for
 * a lock whose record names that process, before the lock is taken.  Returns 0, or -1 with ERROR
 * filled. */
int job_start_child(struct job *job, struct error *error);

/* Run JOB's command, execute it in this process (-F), or hold the locks without one (--hold).
 * Returns the exit status; every message has been printed, ERROR's as well. */
int run(struct job *job, struct error *error);

/* As the subreaper: wait for HOLDER to end, passing signals to it.  Returns its exit status, or
 * dies as it did. */
int run_subreaper(pid_t holder);

/* ---- what came of it: messages, events and exit statuses; how long the lock has been held ---- */

/* What messages call LOCK; the text may be overwritten by the next call. */
const char *messages_label(const struct request *request, const struct lock *lock);

/* LOCK is busy for REASON: write the event; say so, and who holds it, on a terminal or with
 * --verbose, but never with -q.  Returns the status for it. */
int result_of_busy(const struct request *request, const struct lock *lock, enum busy_reason reason);

/* The lock is held from now on. */
void held_begins(void);

/* For how long the lock has been held, in ns; 0 before held_begins(). */
int64_t held_time(void);

/* The command has ended, and all signals are blocked: wait until the lock has been held for
 * DURATION ns, or a signal asks semlock to end. */
void held_at_least(int64_t duration);

/* The status for the command's RESULT.  Writes the event; a message too, if the command never
 * ran. */
int result_status(const struct request *request, const struct result *result);

/* STATUS; or EXIT_LOST, with an event and a message, if one of the released LOCKS had been removed
 * or replaced by a program that ignores it: another command may have run beside this one. */
int result_if_lost(const struct request *request, const struct lock *locks, int status);

/* If STATUS still says that signal SIGNO, which semlock received too, ended the command: die of
 * SIGNO, without a core.  A shell ends its loop at Ctrl-C, and systemd takes SIGTERM for a clean
 * stop, only if semlock dies of it too.  Returns STATUS if SIGNO is 0 or does not kill, as for
 * process 1 of a container. */
int result_die_of(int status, int signo);

/* Print ERROR of LOCK (NULL: of the lock that was named first), and write the event.  Returns the
 * status for it. */
int result_of_error(const struct request *request, const struct lock *lock,
    const struct error *error);

/* ---- --hold: no command runs; semlock holds the lock for its owner, the process that started it
 * ---- */

/* Before the wait: until hold_taken(), semlock ends as by SIGTERM when standard input is hung up or
 * the process OWNER (0: the parent) has ended.  Returns false, with a message, when there is no
 * such process. */
bool hold_for(pid_t owner);

/* The lock is held: from now on, hold_until_end() alone ends semlock. */
void hold_taken(void);

/* The placeholder, in the command's place and with its environment: print "OK" on standard output,
 * with " slot=N" and " token=N" where the lock has them, and exit when standard input or the owner
 * ends.  If OK cannot be printed, the caller does not know of its lock: exit at once. */
void hold_until_end(void);

/* ---- --log: one line of JSON for each run, at its end ---- */

/* Open the log that REQUEST names.  A log that cannot be opened is a message, no failure. */
void log_open(const struct request *request);

/* This run is the NTH (from 1) of those that wait. */
void log_place(size_t nth);

/* Write the line of JOB, or of a run that has not begun (NULL), in one write(2).  Returns
 * STATUS. */
int log_write(const struct request *request, const struct job *job, int status);

#endif
