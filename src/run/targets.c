#include <config.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "sys/pidfd.h"
#include "run/targets.h"

/* Whoever has ended and not been waited for yet still takes signals, and has let go. */
static bool lives(const struct target *target)
{
	struct pollfd end = {target->pidfd, POLLIN, 0};

	return poll(&end, 1, 0) == 0;
}

struct target *targets_find(const struct targets *targets, pid_t pid)
{
	for (size_t i = 0; i < targets->count; i++)
		if (targets->list[i].pid == pid && lives(&targets->list[i]))
			return &targets->list[i];
	return NULL;
}

bool targets_obeying(const struct targets *targets)
{
	for (size_t i = 0; i < targets->count; i++)
		if (targets->list[i].server_text && lives(&targets->list[i]))
			return true;
	return false;
}

int targets_add(struct targets *targets, pid_t pid)
{
	struct target *list;
	int pidfd;

	if (targets_find(targets, pid) != NULL)
		return 0;
	pidfd = pidfd_of(pid);
	if (pidfd < 0)
		return errno == ESRCH ? 0 : -1;
	list = realloc(targets->list, (targets->count + 1) * sizeof *list);
	if (list == NULL) {
		close(pidfd);
		errno = ENOMEM;
		return -1;
	}
	list[targets->count++] = (struct target){.pid = pid, .pidfd = pidfd};
	targets->list = list;
	return 0;
}

int targets_signal(const struct target *target, int signo)
{
	return pidfd_send(target->pidfd, signo) == 0 || errno == ESRCH ? 0 : -1;
}

/* A descriptor of somebody who has ended is good for nothing, and would keep poll() awake. */
static void forget_ended(struct targets *targets)
{
	size_t kept = 0;

	for (size_t i = 0; i < targets->count; i++) {
		if (lives(&targets->list[i]))
			targets->list[kept++] = targets->list[i];
		else
			close(targets->list[i].pidfd);
	}
	targets->count = kept;
}

void targets_wait(struct targets *targets, int64_t most)
{
	struct pollfd ends[32];
	const struct target *target;
	nfds_t count = 0;
	int64_t left;

	forget_ended(targets);
	for (size_t i = 0; i < targets->count; i++) {
		target = &targets->list[i];
		if (count < sizeof ends / sizeof *ends)
			ends[count++] = (struct pollfd){target->pidfd, POLLIN, 0};
		if (!target->server_text || target->kill.never)
			continue;
		left = deadline_left(&target->kill) / MILLISECOND + 1;
		most = left < most ? left : most;
	}
	poll(ends, count, (int)most);
}

void targets_forget(struct targets *targets)
{
	for (size_t i = 0; i < targets->count; i++)
		close(targets->list[i].pidfd);
	free(targets->list);
	*targets = (struct targets){0};
}
