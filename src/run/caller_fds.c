/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/caller_fds.h"

/* Returns 0, or -1 with ERROR filled. */
static int add(struct caller_fds *caller, int fd, struct error *error)
{
	const size_t step = 256;
	int *longer;

	if (caller->count % step == 0) {
		longer = realloc(caller->list, (caller->count + step) * sizeof *longer);
		if (longer == NULL)
			return error_set(error, ERROR_SYSTEM, "no memory");
		caller->list = longer;
	}
	caller->list[caller->count++] = fd;
	return 0;
}

int caller_fds_list(struct caller_fds *caller, struct error *error)
{
	enum { MOST_WITHOUT_PROC = 1024 };
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;
	int status = 0, fd;

	*caller = (struct caller_fds){.list = malloc(sizeof *caller->list)};
	if (caller->list == NULL) /* which would say that semlock is in the foreground */
		return error_set(error, ERROR_SYSTEM, "no memory");
	while (directory != NULL && status == 0 && (entry = readdir(directory)) != NULL) {
		fd = atoi(entry->d_name);
		if (fd > STDERR_FILENO && fd != dirfd(directory))
			status = add(caller, fd, error);
	}
	for (fd = STDERR_FILENO + 1; directory == NULL && status == 0 && fd < MOST_WITHOUT_PROC;
	     fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			status = add(caller, fd, error);
	if (directory != NULL)
		closedir(directory);
	return status;
}

void caller_fds_close(struct caller_fds *caller)
{
	for (unsigned i = 0; i < caller->count; i++)
		close(caller->list[i]);
	caller->count = 0;
}

/* Would the end of FD be the end of one of the COUNT LOCKS?  Closing any descriptor of a file drops
 * the process's own (POSIX) locks on it. */
static bool carries_lock(int fd, const struct lock *locks, unsigned count)
{
	struct stat file;

	if (count == 0 || (locks->spec->method->can & OWNED_BY_PROCESS) == 0 ||
	    fstat(fd, &file) != 0)
		return false;
	for (unsigned i = 0; i < count; i++)
		if (file.st_dev == locks[i].id.device && file.st_ino == locks[i].id.inode)
			return true;
	return false;
}

void caller_leave(struct caller_fds *caller, const struct lock *locks, unsigned count)
{
	unsigned others = 0;

	if (caller->list == NULL)
		return;
	for (unsigned i = 0; i < caller->count; i++)
		if (!carries_lock(caller->list[i], locks, count))
			caller->list[others++] = caller->list[i];
	caller->count = others;
	caller_fds_close(caller);
	if (chdir("/") != 0)
		complain("cannot enter the directory /: %s", strerror(errno));
}
