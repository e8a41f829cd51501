/* run/messages.h - messages about a lock that is taken or busy.
 *
 * As flock, in flock(1)'s words and on flock(1)'s stream. */
#ifndef SEMLOCK_RUN_MESSAGES_H
#define SEMLOCK_RUN_MESSAGES_H

#include <stdint.h>

#include "cli/options.h"

/* What messages call LOCK; the text may be overwritten by the next call. */
const char *messages_label(const struct request *request, const struct lock *lock);

/* For --verbose: the lock was taken after a wait that began at SINCE, ns on clock_now()'s clock. */
void messages_taken(const struct request *request, int64_t since);

/* For --verbose: the command starts. */
void messages_running(const struct request *request);

/* For --verbose, unless as flock: process PID has been signalled (--replace, --toggle). */
void messages_stopped(const struct request *request, pid_t pid);

/* LOCK is busy, and held by such a process: on a terminal, or with --verbose; never with -q.
 * WAITED: the wait's time is up. */
void messages_busy(const struct request *request, const struct lock *lock, bool waited);

#endif
