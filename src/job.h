/* job.h - all that is to be done, and with what: made of the options, before anything happens. */
#ifndef SEMLOCK_JOB_H
#define SEMLOCK_JOB_H

#include "command.h"
#include "lock.h"
#include "options.h"
#include "tether.h"

struct job {
	const struct options *opt;
	struct lock *locks;     /* as many as OPT names */
	struct command command;
	struct bearer bearer;
	struct tether tether;   /* with --tether */
	int died_of;            /* the signal that ended the command, if semlock got it as well; or 0 */
};

/* Make JOB of OPT; it must stay where it is.  Ends the process when there is no memory. */
void job_make(struct job *job, const struct options *opt);

/* With --hold and --tether something of ours stands where the command would run.  Ends the
 * process when that cannot be. */
void job_make_stand(struct job *job);

/* What the command is told of the locks, and gets of them.  Returns 0, or -1 with WHY filled. */
int job_give_locks(struct job *job, struct why *why);

#endif
