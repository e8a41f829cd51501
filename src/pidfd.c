#include <config.h>

#include "pidfd.h"

#if HAVE_DECL_SYS_PIDFD_OPEN && HAVE_DECL_SYS_PIDFD_SEND_SIGNAL

#include <sys/syscall.h>
#include <unistd.h>

int pidfd_of(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

int pidfd_send(int fd, int signo)
{
	return (int)syscall(SYS_pidfd_send_signal, fd, signo, NULL, 0);
}

#else

#include <errno.h>

int pidfd_of(pid_t pid)
{
	(void)pid;
	errno = ENOSYS;
	return -1;
}

int pidfd_send(int fd, int signo)
{
	(void)fd;
	(void)signo;
	errno = ENOSYS;
	return -1;
}

#endif
