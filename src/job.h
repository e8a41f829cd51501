/* job.h - all that is to be done, and with what: made of the options, before anything happens. */
#ifndef SEMLOCK_JOB_H
#define SEMLOCK_JOB_H

#include "command.h"
#include "lock.h"
#include "options.h"

struct job {
	const struct options *opt;
	struct lock *locks;     /* as many as OPT names */
	struct command command;
	struct bearer bearer;
};

/* Make JOB of OPT; it must stay where it is.  Ends the process when there is no memory. */
void job_make(struct job *job, const struct options *opt);

/* With --hold, a process of ours runs where the command would.  Ends semlock if its owner has
 * ended. */
void job_make_stand(struct job *job);

/* What the command is told of the locks, and gets of them.  Returns 0, or -1 with WHY filled. */
int job_give_locks(struct job *job, struct why *why);

#endif
