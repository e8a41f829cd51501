/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "preempt/target_list.h"
#include "sys/process.h"
#include "sys/signals.h"
#include "sys/waiting.h"

/* Is TARGET alive?  A zombie is not: it still takes signals, but it has released its locks. */
static bool lives(const struct target *target)
{
	return !watched_ended(&(struct watched){.pid = target->pid, .pidfd = target->pidfd});
}

struct target *target_find(const struct target_list *list, pid_t pid)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->targets[i].pid == pid && lives(&list->targets[i]))
			return &list->targets[i];
	return NULL;
}

bool target_list_obeys(const struct target_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->targets[i].signalled && lives(&list->targets[i]))
			return true;
	return false;
}

int target_add(struct target_list *list, pid_t pid)
{
	struct target *targets;
	int pidfd;

	if (target_find(list, pid) != NULL)
		return 0;
	pidfd = pidfd_of(pid);
	if (pidfd < 0)
		return errno == ESRCH ? 0 : -1;
	targets = realloc(list->targets, (list->count + 1) * sizeof *targets);
	if (targets == NULL) {
		close(pidfd);
		errno = ENOMEM;
		return -1;
	}
	targets[list->count++] = (struct target){.pid = pid, .pidfd = pidfd};
	list->targets = targets;
	return 0;
}

int target_signal(const struct target *target, int signo)
{
	return pidfd_queue(target->pidfd, signo, MARK_REPLACED) == 0 || errno == ESRCH ? 0 : -1;
}

void target_list_prune(struct target_list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		if (lives(&list->targets[i]))
			list->targets[kept++] = list->targets[i];
		else
			close(list->targets[i].pidfd);
	}
	list->count = kept;
}

int64_t target_list_kill_in(const struct target_list *list)
{
	int64_t least = INT64_MAX;

	for (size_t i = 0; i < list->count; i++) {
		const struct target *target = &list->targets[i];

		if (target->signalled && deadline_left(&target->kill) / MILLISECOND + 1 < least)
			least = deadline_left(&target->kill) / MILLISECOND + 1;
	}
	return least;
}

void target_list_await(const struct target_list *list, int64_t ms)
{
	struct pollfd ends[32];
	nfds_t polled = 0;

	for (size_t i = 0; i < list->count && polled < sizeof ends / sizeof *ends; i++)
		ends[polled++] = (struct pollfd){list->targets[i].pidfd, POLLIN, 0};
	if (poll_until(ends, polled, deadline_after(ms * MILLISECOND)) < 0)
		nap(ms * MILLISECOND);
}

void target_list_forget(struct target_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		close(list->targets[i].pidfd);
	free(list->targets);
	*list = (struct target_list){0};
}
