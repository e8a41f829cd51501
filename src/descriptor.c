#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "descriptor.h"

int descriptor_above_standard(int fd)
{
	int higher, errnum;

	if (fd > STDERR_FILENO)
		return fd;
	higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	errnum = errno;
	close(fd);
	errno = errnum;
	return higher;
}
