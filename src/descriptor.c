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

int descriptor_pipe(int ends[2])
{
	if (pipe(ends) != 0)
		return -1;
	for (int i = 0; i < 2; i++)
		fcntl(ends[i], F_SETFD, FD_CLOEXEC);
	ends[0] = descriptor_above_standard(ends[0]);
	ends[1] = descriptor_above_standard(ends[1]);
	if (ends[0] >= 0 && ends[1] >= 0)
		return 0;
	for (int i = 0; i < 2; i++)
		if (ends[i] >= 0)
			close(ends[i]);
	return -1;
}
