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

int caller_fds_list(struct caller_fds *caller, struct error *error)
{
	enum { MOST_WITHOUT_PROC = 1024 };
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;
	int *list, fd;

	caller->count = 0;
	list = malloc(sizeof *list * MOST_WITHOUT_PROC);
	if (list == NULL)
		return error_set(error, ERROR_SYSTEM, "no memory");
	while (directory != NULL && caller->count < MOST_WITHOUT_PROC &&
	       (entry = readdir(directory)) != NULL) {
		fd = atoi(entry->d_name);
		if (fd > STDERR_FILENO && fd != dirfd(directory))
			list[caller->count++] = fd;
	}
	for (fd = STDERR_FILENO + 1; directory == NULL && fd < MOST_WITHOUT_PROC; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			list[caller->count++] = fd;
	if (directory != NULL)
		closedir(directory);
	caller->list = list;
	return 0;
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
