/* run/targets.h - processes that may have to be signalled, each known by a descriptor of that
 * very process (pidfd): once it has ended, whatever is sent to it reaches nobody, whoever has
 * its number by then. */
#ifndef SEMLOCK_RUN_TARGETS_H
#define SEMLOCK_RUN_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sys/deadline.h"

struct target {
	pid_t pid;
	int pidfd;
	bool server_text;            /* it has been signalled ... */
	struct deadline kill; /* ... and has so long to obey */
};

struct targets {
	struct target *list;
	size_t count;
};

/* The living target PID, or NULL. */
struct target *targets_find(const struct targets *targets, pid_t pid);

/* Is there one that has been signalled, and still lives? */
bool targets_obeying(const struct targets *targets);

/* Make PID one of TARGETS.  Returns 0, also when there is no such process (any more); -1 with
 * errno set. */
int targets_add(struct targets *targets, pid_t pid);

/* Send SIGNO to TARGET.  Returns 0, also when it has ended; -1 with errno set. */
int targets_signal(const struct target *target, int signo);

/* Sleep until one of TARGETS ends, or is to be killed, or for MOST milliseconds. */
void targets_wait(struct targets *targets, int64_t most);

void targets_forget(struct targets *targets);

#endif
