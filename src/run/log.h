/* SPDX-License-Identifier: MIT */
/* run/log.h - --log: one line of JSON for each run, at its end. */
#ifndef SEMLOCK_RUN_LOG_H
#define SEMLOCK_RUN_LOG_H

#include <stddef.h>

#include "cli/request.h"
#include "lock/lock.h"
#include "report/error.h"
#include "run/outcome.h"

struct run_log {
	int fd; /* -1: none, or the line has been written */
	/* its name, absolute for a hold in the background, which changes the directory; NULL:
	 * unknown */
	const char *name;
	size_t place; /* its place when its wait began; 0: no wait, or unknown */
};

/* Open the log that REQUEST names, creating it if needed.  If that fails, a message is printed and
 * the run goes on without a log.  Returns 0, or -1 with ERROR filled when the log is the lock
 * itself. */
int log_open(struct run_log *log, const struct request *request, struct error *error);

/* The run of REQUEST has ended with OUTCOME, and has released its LOCKS: write its line, in one
 * write(2), to the file that has the log's name now, and close the log. */
void log_write(struct run_log *log, const struct request *request,
    const struct run_outcome *outcome, const struct lock *locks);

#endif
