/* run/run.h - the command under its lock, and what goes on while it runs. */
#ifndef SEMLOCK_RUN_RUN_H
#define SEMLOCK_RUN_RUN_H

#include "run/job.h"

/* Run JOB's command, or become it, or stand in its place.  Returns the status to exit with. */
int run(struct job *job);

#endif
