/* SPDX-License-Identifier: MIT */
/* run/run.h - one run, in the order of main.c: a job is made of the request, its locks are taken, its command runs;
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
	int died_of;        /* the signal that ended the command, if semlock has received it too; else 0 */
};

/* Make JOB of REQUEST; both must stay where they are.  Returns 0, or -1 with ERROR filled when there is no
 * memory. */
int job_make(struct job *job, const struct request *request, struct error *error);

struct acquired {
	enum {
		ACQUIRED_LOCKS,
		ACQUIRED_BY_INHERITANCE, /* none was taken: what this process has inherited holds them (--nested) */
		ACQUIRED_NOTHING         /* every message has been printed: end with STATUS */
	} how;
	int status;
};

/* Take the LOCKS of REQUEST. */
struct acquired acquire(const struct request *request, struct lock *locks);

/* Run JOB's command, execute it in this process (-F), or hold the locks without one (--hold).  Returns the
 * exit status; every message has been printed. */
int run(struct job *job);

/* As the relay: wait for HOLDER to end, passing signals to it.  Returns its exit status, or dies as it did. */
int run_relay(pid_t holder);

/* ---- --hold: no command runs; semlock holds the lock for its owner, the process that started it ---- */

/* Before the wait: until hold_taken(), semlock ends as by SIGTERM when standard input is hung up or the
 * process OWNER (0: the parent) has ended.  Returns false, with a message, when there is no such process. */
bool hold_for(pid_t owner);

/* The lock is held: from now on, hold_until_end() alone ends semlock. */
void hold_taken(void);

/* The placeholder, in the command's place and with its environment: print "OK" on standard output, with
 * " slot=N" and " token=N" where the lock has them, and exit when standard input or the owner ends.  If OK
 * cannot be printed, the caller does not know of its lock: exit at once. */
void hold_until_end(void);

/* ---- --log: one line of JSON for each run, at its end ---- */

/* Open the log that REQUEST names, if it names one.  A log that cannot be opened is a message, no failure. */
void log_open(const struct request *request);

/* This run is the PLACE-th (from 1) of those that wait. */
void log_place(size_t place);

/* The command has ended, and JOB's locks are held still: note what the release forgets. */
void log_command(const struct job *job);

/* Write the line of JOB, or of a run that has not begun (NULL), in one write(2).  Returns STATUS. */
int log_write(const struct request *request, const struct job *job, int status);

#endif
