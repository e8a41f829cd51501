/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lock/queue.h"
#include "sys/open_fds.h"
#include "sys/process.h"
#include "preempt/targets.h"

/* A zombie still takes signals, and has released its locks. */
static bool target_lives(const struct target *target)
{
	struct pollfd end = {target->pidfd, POLLIN, 0};

	return poll(&end, 1, 0) == 0;
}

struct target *targets_find(const struct targets *targets, pid_t pid)
{
	for (size_t i = 0; i < targets->count; i++)
		if (targets->list[i].pid == pid && target_lives(&targets->list[i]))
			return &targets->list[i];
	return NULL;
}

bool targets_obeying(const struct targets *targets)
{
	for (size_t i = 0; i < targets->count; i++)
		if (targets->list[i].signalled && target_lives(&targets->list[i]))
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

/* The pidfd of an ended process would keep poll(2) from sleeping. */
static void forget_ended(struct targets *targets)
{
	size_t kept = 0;

	for (size_t i = 0; i < targets->count; i++) {
		if (target_lives(&targets->list[i]))
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
		if (!target->signalled || target->kill.never)
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

bool targets_of_flock(const struct owner *holder)
{
	struct procfs_stat supervisor;

	return holder->kind != 0 && process_stat(holder->supervisor, &supervisor) &&
	       strcmp(supervisor.name, "flock") == 0;
}

pid_t targets_choose(const struct owner *holder, int signo)
{
	struct procfs_stat supervisor;

	if (holder->supervisor == 0 || !owner_has(holder, holder->supervisor))
		return holder->process.pid;
	if (!owner_has(holder, holder->process.pid))
		return targets_of_flock(holder) ? holder->process.pid : holder->supervisor;
	if (signo != SIGKILL && process_stat(holder->supervisor, &supervisor) &&
	    strcmp(supervisor.name, "semlock") == 0)
		return holder->supervisor;
	return holder->process.pid;
}

/* The path of LOCK; NULL: it has none. */
static char *path_of(const struct lock *lock)
{
	char self[40];

	snprintf(self, sizeof self, "/proc/self/fd/%d", lock->spec->fd);
	return realpath(lock->spec->name != NULL ? lock->spec->name : self, NULL);
}

/* Can no user but root open LOCK?  Its own mode keeps them out, or that of a directory above it. */
static bool is_roots_alone(const struct lock *lock)
{
	char *path = path_of(lock), *slash;
	struct stat file;
	bool alone = false, is_lock = true;

	while (path != NULL && !alone && stat(*path == '\0' ? "/" : path, &file) == 0) {
		alone = file.st_uid == 0 && (file.st_mode & (is_lock ? S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH : S_IXGRP | S_IXOTH)) == 0;
		is_lock = false;
		slash = strrchr(path, '/');
		if (slash == NULL)
			break;
		*slash = '\0';
	}
	free(path);
	return alone;
}

const char *targets_unproven(const struct owner *holder, pid_t pid, const struct lock *lock)
{
	pid_t taker = holder->kind == KIND_OFD && holder->taker <= 0 ? holder->supervisor : holder->taker;
	struct process process;

	if (holder->kind == 0 || !process_read(pid, &process))
		return NULL;
	if (taker > 0 && owner_has(holder, taker) &&
	    (pid == taker || (taker == holder->supervisor && process.parent == taker)))
		return NULL;
	if (process.real_user != getuid())
		return "is another user's, and has the lock's descriptor, but has not taken the lock itself";
	if (process.real_user == 0 && !is_roots_alone(lock))
		return "has the lock's descriptor, but has not taken the lock itself, and other users can open the lock, "
		       "and may have passed it on";
	return NULL;
}

static bool others_wait(const struct owners *found)
{
	for (size_t i = found->holders; i < found->count; i++)
		if (found->list[i].process.pid != getpid())
			return true;
	return false;
}

/* Has PID a ticket in the queue in FILE?  *BLIND: its descriptors cannot be seen. */
static bool has_ticket(pid_t pid, const struct identity *file, bool *blind)
{
	struct open_fds open_fds = {.files = file, .nfiles = 1};
	bool ticket = false;

	open_fds_of(&open_fds, pid);
	*blind = *blind || open_fds.blind;
	for (size_t i = 0; i < open_fds.count; i++)
		ticket = ticket || (open_fds.list[i].locked && open_fds.list[i].lock.exclusive);
	open_fds_forget(&open_fds);
	return ticket;
}

bool targets_may_yield(const struct owners *found, const struct owner *holder, const struct lock *lock)
{
	char path[QUEUE_PATH_SIZE];
	struct stat queue;
	struct identity file;
	bool blind = holder->process.pid == 0;

	queuefile_path(lock, path);
	if (stat(path, &queue) != 0)
		return false;
	file = (struct identity){queue.st_dev, queue.st_ino};
	/* With a caller's descriptor, the ticket is a child's of the script that has the lock. */
	for (size_t i = 0; i < holder->nmembers; i++)
		if (holder->members[i].pid != getpid() && /* the caller's descriptor, inherited */
		    has_ticket(holder->members[i].pid, &file, &blind))
			return true;
	return blind && others_wait(found);
}
