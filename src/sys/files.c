/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <fcntl.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/files.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* If MAKEFLAGS names descriptors 3 and 4, make(1) 4.3 takes them for its jobserver's pipe, and
 * writes to them, whatever is open there. */
static int lowest_of_ours(void)
{
	const int above_jobserver = 10;

	return getenv("MAKEFLAGS") != NULL ? above_jobserver : STDERR_FILENO + 1;
}

int descriptor_above_standard(int fd)
{
	const int lowest = lowest_of_ours();
	int higher, errnum;

	if (fd < 0 || fd >= lowest)
		return fd;
	higher = fcntl(fd, F_DUPFD_CLOEXEC, lowest);
	if (higher < 0 && fd > STDERR_FILENO)
		return fd; /* RLIMIT_NOFILE allows no higher one */
	errnum = errno;
	close(fd);
	errno = errnum;
	return higher;
}

static int keep_private(int ends[2])
{
	ends[0] = descriptor_above_standard(ends[0]);
	ends[1] = descriptor_above_standard(ends[1]);
	if (ends[0] >= 0 && ends[1] >= 0)
		return 0;
	for (int i = 0; i < 2; i++)
		if (ends[i] >= 0)
			close(ends[i]);
	return -1;
}

int descriptor_pipe(int ends[2])
{
	return pipe2(ends, O_CLOEXEC) == 0 ? keep_private(ends) : -1;
}

int descriptor_socket_pair(int ends[2])
{
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0 ? keep_private(ends)
	                                                                     : -1;
}

void descriptor_close_others(void)
{
	long limit = sysconf(_SC_OPEN_MAX);
	unsigned most = limit > 0 && limit < 65536 ? (unsigned)limit : 65536;

	if (syscall(SYS_close_range, STDERR_FILENO + 1, UINT_MAX, 0) == 0)
		return;
	for (unsigned fd = STDERR_FILENO + 1; fd < most; fd++)
		close((int)fd);
}

ssize_t descriptor_write(int fd, const void *bytes, size_t size, off_t offset)
{
	struct sigaction ignored = {.sa_handler = SIG_IGN}, before;
	ssize_t put;

	sigaction(SIGXFSZ, &ignored, &before);
	put = pwrite(fd, bytes, size, offset);
	sigaction(SIGXFSZ, &before, NULL);
	return put;
}

const char *path_directory(const char *path, char space[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	size_t length = slash == NULL ? 0 : (size_t)(slash - path);

	if (slash == NULL)
		return ".";
	if (length == 0)
		return "/";
	if (length >= PATH_MAX) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	memcpy(space, path, length);
	space[length] = '\0';
	return space;
}

const char *path_absolute(const char *path, char space[PATH_MAX])
{
	size_t length;

	if (path[0] == '/')
		return path;
	if (getcwd(space, PATH_MAX) == NULL) {
		if (errno == ERANGE)
			errno = ENAMETOOLONG;
		return NULL;
	}
	length = strlen(space);
	if (length + 1 + strlen(path) >= PATH_MAX) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	stpcpy(stpcpy(space + length, "/"), path);
	return space;
}

int call_open(int directory, const char *name, int flags, mode_t mode)
{
	int fd;

	UNINTERRUPTED(fd, openat(directory, name, flags, mode));
	return fd;
}

int call_unlink(int directory, const char *name, int flags)
{
	int result;

	UNINTERRUPTED(result, unlinkat(directory, name, flags));
	return result;
}

int rename_noreplace(int directory, const char *from, const char *to)
{
	const unsigned noreplace = 1; /* RENAME_NOREPLACE, which older headers lack */

	return (int)syscall(SYS_renameat2, directory, from, directory, to, noreplace);
}

int call_try_flock(int fd)
{
	int result;

	UNINTERRUPTED(result, flock(fd, LOCK_EX | LOCK_NB));
	return result;
}
