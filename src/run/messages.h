/* run/messages.h - what people are told while all goes as it should.
 *
 * By the name flock, in flock(1)'s words and on the stream that it uses. */
#ifndef SEMLOCK_RUN_MESSAGES_H
#define SEMLOCK_RUN_MESSAGES_H

#include <stdint.h>

#include "cli/options.h"

/* With --verbose: the lock was taken, after waiting since SINCE on clock_now()'s clock. */
void messages_taken(const struct request *request, int64_t since);

/* With --verbose: the command is about to run. */
void messages_running(const struct request *request);

/* With --verbose: process PID has been told to let go. */
void messages_stopped(const struct request *request, pid_t pid);

/* LOCK is not to be had, and who holds it: on a terminal, or with --verbose; never with -q.
 * WAITED: until the time was up. */
void messages_busy(const struct request *request, const struct lock *lock, bool waited);

#endif
