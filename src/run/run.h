/* SPDX-License-Identifier: MIT */
/* run/run.h - a job: the locks and the command that a request asks for, and the run of the command. */
#ifndef SEMLOCK_RUN_RUN_H
#define SEMLOCK_RUN_RUN_H

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

/* Run JOB's command, execute it in this process (-F), or hold the locks without one (--hold).  Returns the
 * exit status; every message has been printed. */
int run(struct job *job);

/* As the relay: wait for HOLDER to end, passing signals to it.  Returns its exit status, or dies as it did. */
int run_relay(pid_t holder);

#endif
