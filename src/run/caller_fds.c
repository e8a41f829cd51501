/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
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

void caller_fds_close(const struct caller_fds *caller)
{
	for (unsigned i = 0; i < caller->count; i++)
		close(caller->list[i]);
}

void caller_leave(const struct caller_fds *caller)
{
	if (caller->list == NULL)
		return;
	caller_fds_close(caller);
	if (chdir("/") != 0)
		complain("cannot enter the directory /: %s", strerror(errno));
}
