/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hold/caller_fds.h"
#include "lock/lockset.h"

/* Returns 0, or -1 with ERROR filled. */
static int add(struct caller_fds *caller, int fd, struct error *error)
{
	const size_t step = 256;
	int *longer;

	if (caller->count % step == 0) {
		longer = realloc(caller->list, (caller->count + step) * sizeof *longer);
		if (longer == NULL)
			return error_set(error, ERROR_SYSTEM, "out of memory");
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
	if (caller->list == NULL) /* NULL would mean that semlock is in the foreground */
		return error_set(error, ERROR_SYSTEM, "out of memory");
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

void caller_leave(struct caller_fds *caller, const struct lock *locks, unsigned count)
{
	unsigned others = 0;

	if (caller->list == NULL)
		return;
	for (unsigned i = 0; i < caller->count; i++)
		if (!posix_lock_is_on(caller->list[i], locks, count))
			caller->list[others++] = caller->list[i];
	caller->count = others;
	caller_fds_close(caller);
	if (chdir("/") != 0)
		complain("cannot enter the directory /: %s", strerror(errno));
}
