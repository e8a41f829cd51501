#include <config.h>

#include "sys/pipe_holders.h"

#include "sys/pidfd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* PIPE_HOLDERS, and what they are known by. */
struct search {
	struct pipe_holders *pipe_holders;
	char pipe[64]; /* what its links in /proc/PID/fd read; empty: no pipe */
};

bool pipe_holders_stat(pid_t pid, struct procfs_stat *stat)
{
	char path[40], text[1024];
	ssize_t got = -1;
	int fd;

	snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = read(fd, text, sizeof text - 1);
		close(fd);
	}
	text[got > 0 ? got : 0] = '\0';
	return procfs_stat(text, stat);
}

static bool lives(pid_t pid)
{
	struct procfs_stat stat;

	return pipe_holders_stat(pid, &stat) && stat.state != 'Z' && stat.state != 'X';
}

static bool descends(pid_t pid, const struct pipe_holders *pipe_holders)
{
	struct procfs_stat stat;

	while (pid > 0 && pid != pipe_holders->except && pipe_holders_stat(pid, &stat)) {
		if (stat.parent == pipe_holders->elder)
			return stat.started >= pipe_holders->since;
		pid = stat.parent;
	}
	return false;
}

static bool has_pipe(long pid, const char *pipe)
{
	char path[64], link[64];
	struct dirent *entry;
	bool found = false;
	DIR *fds;

	snprintf(path, sizeof path, "/proc/%ld/fd", pid);
	fds = opendir(path);
	if (fds == NULL)
		return false;
	while (!found && (entry = readdir(fds)) != NULL) {
		ssize_t n = readlinkat(dirfd(fds), entry->d_name, link, sizeof link - 1);

		if (n <= 0)
			continue;
		link[n] = '\0';
		found = strcmp(link, pipe) == 0;
	}
	closedir(fds);
	return found;
}

static bool holds(long pid, void *context)
{
	const struct search *search = context;
	struct pipe_holders *pipe_holders = search->pipe_holders;

	if (!lives((pid_t)pid) || !((pipe_holders->elder > 0 && descends((pid_t)pid, pipe_holders)) ||
				      (search->pipe[0] != '\0' && has_pipe(pid, search->pipe))))
		return false;
	if (kill((pid_t)pid, 0) != 0 && errno == EPERM)
		pipe_holders->refused = (pid_t)pid;
	return true;
}

static bool signal_one(long pid, bool (*is_one)(long pid, void *context), void *context, int signo)
{
	/* The pidfd first, the look second: what we looked at is then what we signal. */
	int fd = pidfd_of((pid_t)pid);
	bool found = (fd >= 0 || errno == ENOSYS) && is_one(pid, context);

	if (found && fd >= 0)
		pidfd_send(fd, signo);
	else if (found)
		kill((pid_t)pid, signo);
	if (fd >= 0)
		close(fd);
	return found;
}

/* All that there are; returns how many, at most MOST. */
static size_t all_processes(long *pids, size_t most)
{
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	size_t count = 0;

	if (proc == NULL)
		return 0;
	while (count < most && (entry = readdir(proc)) != NULL) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);

		if (*end == '\0' && pid > 1)
			pids[count++] = pid;
	}
	closedir(proc);
	return count;
}

size_t pipe_holders_signal_if(bool (*is_one)(long pid, void *context), void *context, int signo,
    pid_t except)
{
	static const size_t most = 1 << 17;
	long *pids = malloc(most * sizeof *pids);
	size_t count = pids != NULL ? all_processes(pids, most) : 0, found = 0;

	/* The youngest first: what forks and ends is there no longer when its turn comes. */
	while (count-- > 0)
		if (pids[count] != (long)getpid() && pids[count] != (long)except)
			found += signal_one(pids[count], is_one, context, signo);
	free(pids);
	return found;
}

/* In a PID namespace that has not mounted its own /proc, the numbers in there mean others. */
static bool numbers_ours(void)
{
	char self[24];
	ssize_t length = readlink("/proc/self", self, sizeof self - 1);

	self[length > 0 ? length : 0] = '\0';
	return strtol(self, NULL, 10) == (long)getpid();
}

size_t pipe_holders_signal(struct pipe_holders *pipe_holders, int signo)
{
	struct search search = {pipe_holders, ""};
	char self[32];
	ssize_t length;

	if (!numbers_ours())
		return 0;
	snprintf(self, sizeof self, "/proc/self/fd/%d", pipe_holders->pipe);
	length = readlink(self, search.pipe, sizeof search.pipe - 1);
	/* Only an anonymous pipe is private to the lock; a terminal or a file is everybody's. */
	if (length <= 0 || strncmp(search.pipe, "pipe:[", 6) != 0)
		search.pipe[0] = '\0';
	return pipe_holders_signal_if(holds, &search, signo, pipe_holders->except);
}

bool pipe_holders_reap(void)
{
	bool reaped = false;

	while (waitpid(-1, NULL, WNOHANG) > 0)
		reaped = true;
	return reaped;
}
