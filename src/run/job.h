/* run/job.h - all that is to be done, and with what: made of the options, before anything happens. */
#ifndef SEMLOCK_RUN_JOB_H
#define SEMLOCK_RUN_JOB_H

#include "run/start.h"
#include "lock/lock.h"
#include "cli/options.h"

struct job {
	const struct request *request;
	struct lock *locks;     /* as many as REQUEST names */
	struct command command;
	struct child child;
	int died_of;            /* the signal that ended the command, if semlock got it as well; or 0 */
};

/* Make JOB of REQUEST; it must stay where it is.  Ends the process when there is no memory. */
void job_make(struct job *job, const struct request *request);

/* With --hold, a process of ours runs where the command would.  Ends semlock if its owner has
 * ended. */
void job_make_stand(struct job *job);

/* What the command is told of the locks, and gets of them.  Returns 0, or -1 with ERROR filled. */
int job_give_locks(struct job *job, struct error *error);

#endif
