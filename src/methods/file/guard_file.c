#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "sys/retry.h"
#include "methods/file/guard_file.h"

static int open_guard(const struct file_lock *file, const char *name)
{
	int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
	int fd;

	flags |= file->local ? O_RDONLY : O_RDWR; /* NFS: see takeover.c */

	do { /* without O_CREAT first: see fs.protected_regular */
		fd = openat(file->directory, name, flags);
		if (fd < 0 && errno == ENOENT)
			fd = openat(file->directory, name, flags | O_CREAT | O_EXCL,
			    file->local ? 0444 : 0666);
	} while (fd < 0 && (errno == EEXIST || errno == EINTR));
	return fd;
}

/* The process that had the guard before us removes it, perhaps before we have flocked it: then it is
 * opened afresh. */
int guard_take(const struct file_lock *file, char name[NAME_SIZE])
{
	int fd, errnum;

	snprintf(name, NAME_SIZE, ".%.200s.guard", file->base);
	for (;;) {
		fd = open_guard(file, name);
		if (fd < 0)
			return -1;
		if (call_try_flock(fd) != 0)
			break;
		if (lockdir_same(file, name, fd))
			return fd;
		close(fd);
	}
	errnum = errno;
	close(fd);
	errno = errnum;
	return -1;
}

int guard_await(const struct file_lock *file, int64_t longest, char name[NAME_SIZE])
{
	int guard;

	while ((guard = guard_take(file, name)) < 0 && (errno == EWOULDBLOCK || errno == EINTR) &&
	       longest > 0) {
		lockdir_nap(MILLISECOND);
		longest -= MILLISECOND;
	}
	return guard;
}

/* S6. */
void guard_leave(const struct file_lock *file, int guard, const char *name)
{
	if (guard < 0)
		return;
	call_unlink(file->directory, name, 0);
	close(guard);
}
