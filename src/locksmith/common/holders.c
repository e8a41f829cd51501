#include <config.h>

#include "locksmith/common/holders.h"

#include "pidfd.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_pipe(long pid, void *context)
{
	const char *pipe = context;
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

static void signal_one(long pid, bool (*holds)(long pid, void *context), void *context, int sig)
{
	/* The pidfd first, the look second: what we looked at is then what we signal. */
	int fd = pidfd_of((pid_t)pid);

	if (fd < 0 && errno != ENOSYS)
		return;
	if (holds(pid, context)) {
		if (fd >= 0)
			pidfd_send(fd, sig);
		else
			kill((pid_t)pid, sig);
	}
	if (fd >= 0)
		close(fd);
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

void holders_signal_if(bool (*holds)(long pid, void *context), void *context, int sig, pid_t except)
{
	static const size_t most = 1 << 17;
	long *pids = malloc(most * sizeof *pids);
	size_t count = pids != NULL ? all_processes(pids, most) : 0;

	/* The youngest first: what forks and ends is there no longer when its turn comes. */
	while (count-- > 0)
		if (pids[count] != (long)getpid() && pids[count] != (long)except)
			signal_one(pids[count], holds, context, sig);
	free(pids);
}

void holders_signal(int fd, int sig, pid_t except)
{
	char self[32], pipe[64];
	ssize_t n;

	snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
	n = readlink(self, pipe, sizeof pipe - 1);
	if (n <= 0)
		return;
	pipe[n] = '\0';
	/* Only an anonymous pipe is private to the lock; a terminal or a file is everybody's. */
	if (strncmp(pipe, "pipe:[", 6) == 0)
		holders_signal_if(has_pipe, pipe, sig, except);
}
