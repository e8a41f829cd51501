/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/files.h"
#include "sys/random.h"

/* Before Linux 3.17 there is no getrandom(2): read /dev/urandom instead.  getrandom(2) returns up
 * to 256 bytes as a whole, and a signal can interrupt it only while the kernel has no random bytes
 * yet. */
int random_fill(void *into, size_t size)
{
	ssize_t got = -1;
	int fd, errnum;

#ifdef SYS_getrandom
	UNINTERRUPTED(got, syscall(SYS_getrandom, into, size, 0));
#endif
	if (got == (ssize_t)size)
		return 0;
	UNINTERRUPTED(fd, open("/dev/urandom", O_RDONLY | O_CLOEXEC));
	if (fd < 0)
		return -1;
	UNINTERRUPTED(got, read(fd, into, size));
	errnum = got < 0 ? errno : EIO;
	close(fd);
	errno = errnum;
	return got == (ssize_t)size ? 0 : -1;
}
