/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/pipe_holders.h"
#include "sys/process.h"

enum { MOST_PIDS = 1 << 17 };

struct holder_search {
	struct pipe_holders *holders;
	char pipe[64]; /* the target of its links in /proc/PID/fd; "": no pipe */
	pid_t *pids;   /* all processes */
	size_t count;
};

static bool has_pipe(pid_t pid, const char *pipe)
{
	char path[64], link[64];
	struct dirent *entry;
	bool found = false;
	ssize_t n;
	DIR *fds;

	snprintf(path, sizeof path, "/proc/%ld/fd", (long)pid);
	fds = opendir(path);
	if (fds == NULL)
		return false;
	while (!found && (entry = readdir(fds)) != NULL) {
		n = readlinkat(dirfd(fds), entry->d_name, link, sizeof link - 1);
		link[n > 0 ? n : 0] = '\0';
		found = strcmp(link, pipe) == 0;
	}
	closedir(fds);
	return found;
}

static bool is_holder(const struct holder_search *search, pid_t pid)
{
	struct pipe_holders *holders = search->holders;

	if (!process_lives(pid) || (!process_descends(pid, holders->ancestor, holders->since, holders->except) &&
				       (search->pipe[0] == '\0' || !has_pipe(pid, search->pipe))))
		return false;
	if (kill(pid, 0) != 0 && errno == EPERM)
		holders->refused = pid;
	return true;
}

/* The pidfd is opened before the process is examined: the signal then reaches the process that was examined.  An old
 * kernel (ENOSYS), a container's filter (EPERM) or a limit may refuse it. */
static bool signal_holder(const struct holder_search *search, pid_t pid, int signo)
{
	int fd = pidfd_of(pid);
	bool found = (fd >= 0 || errno != ESRCH) && is_holder(search, pid);

	if (found && fd >= 0)
		pidfd_send(fd, signo);
	else if (found)
		kill(pid, signo);
	if (fd >= 0)
		close(fd);
	return found;
}

/* Waits for PID alone: waitpid(-1) would find UNREAPED each time, and no child behind it. */
static bool has_reaped(pid_t pid, const struct pipe_holders *holders)
{
	return holders->unreaped > 0 && pid != holders->unreaped && waitpid(pid, NULL, WNOHANG) == pid;
}

static bool note_pid(pid_t pid, void *context)
{
	struct holder_search *search = context;

	if (pid > 1 && pid != getpid() && pid != search->holders->except)
		search->pids[search->count++] = pid;
	return search->count < MOST_PIDS;
}

size_t pipe_holders_signal(struct pipe_holders *holders, int signo)
{
	struct holder_search search = {.holders = holders, .pids = malloc(MOST_PIDS * sizeof *search.pids)};
	char self[32];
	size_t found = 0;

	if (search.pids == NULL || !process_numbers_ours()) {
		free(search.pids);
		return 0;
	}
	snprintf(self, sizeof self, "/proc/self/fd/%d", holders->pipe);
	/* Only an anonymous pipe is private to the lock; every process may have a terminal or a file open. */
	if (readlink(self, search.pipe, sizeof search.pipe - 1) <= 0 || strncmp(search.pipe, "pipe:[", 6) != 0)
		search.pipe[0] = '\0';
	process_each(note_pid, &search);
	/* Youngest first: a process that forks and ends is gone when its turn comes. */
	while (search.count-- > 0)
		found += has_reaped(search.pids[search.count], holders) || signal_holder(&search, search.pids[search.count], signo);
	free(search.pids);
	return found;
}

bool pipe_holders_reap(void)
{
	bool reaped = false;

	while (waitpid(-1, NULL, WNOHANG) > 0)
		reaped = true;
	return reaped;
}
