/* SPDX-License-Identifier: MIT */
/* run/log.h - --log: one line of JSON for each run, at its end. */
#ifndef SEMLOCK_RUN_LOG_H
#define SEMLOCK_RUN_LOG_H

#include <stddef.h>

#include "run/run.h"

/* Open the log that REQUEST names, if it names one.  A log that cannot be opened is a message, no failure. */
void log_open(const struct request *request);

/* This run is the PLACE-th (from 1) of those that wait. */
void log_place(size_t place);

/* The command has ended, and JOB's locks are held still: note what the release forgets. */
void log_command(const struct job *job);

/* Write the line of JOB, or of a run that has not begun (NULL), in one write(2). */
void log_write(const struct request *request, const struct job *job);

#endif
