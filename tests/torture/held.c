/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "torture.h"

static bool flocked(void)
{
	int fd = open("lock", O_RDONLY | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

static bool record_locked(void)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = open("lock", O_RDWR | O_CLOEXEC);

	return fd >= 0 && fcntl(fd, F_OFD_GETLK, &all) == 0 && all.l_type != F_UNLCK;
}

static bool is_held(const char *method)
{
	struct stat status;

	if (strcmp(method, "flock") == 0)
		return flocked();
	if (strcmp(method, "ofd") == 0 || strcmp(method, "posix") == 0)
		return record_locked();
	if (strcmp(method, "rename") == 0)
		return lstat("lock", &status) != 0 && lstat("lock.held", &status) == 0;
	return lstat("lock", &status) == 0;
}

int say_if_held(const char *method)
{
	const char *word = is_held(method) ? "held\n" : "FREE\n";
	int fd = open("ran", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, word, 5) != 5)
		fatal("ran");
	close(fd);
	return 0;
}
