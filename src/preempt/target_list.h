/* SPDX-License-Identifier: MIT */
/* preempt/target_list.h - the processes that may be signalled, each known by a pidfd: a descriptor
 * of that very process.  Once the process has ended, a signal reaches no process, even if its PID
 * has been reused. */
#ifndef SEMLOCK_PREEMPT_TARGET_LIST_H
#define SEMLOCK_PREEMPT_TARGET_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "sys/deadline.h"

struct target {
	pid_t pid;
	int pidfd;
	bool signalled;
	bool proven;          /* a part of the job: see targets_is_of_job() */
	struct deadline kill; /* once SIGNALLED: the time of SIGKILL */
};

struct target_list {
	struct target *targets;
	size_t count;
};

/* Returns the target with this PID, if it is alive; else NULL. */
struct target *target_find(const struct target_list *list, pid_t pid);

/* Add PID, unless LIST has it.  Returns 0, also if no such process exists; or -1 with errno set. */
int target_add(struct target_list *list, pid_t pid);

/* Send SIGNO (0: only check that it may be sent).  Returns 0, also when TARGET has ended; -1 with
 * errno set. */
int target_signal(const struct target *target, int signo);

/* Is a target that has been signalled still alive? */
bool target_list_obeys(const struct target_list *list);

/* Drop the targets that have ended. */
void target_list_prune(struct target_list *list);

/* Sleep until a target ends, for MS ms at most. */
void target_list_await(const struct target_list *list, int64_t ms);

/* The time until the first SIGKILL is due, in ms; a very long time if none is. */
int64_t target_list_kill_in(const struct target_list *list);

void target_list_forget(struct target_list *list);

#endif
