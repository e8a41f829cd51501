#include <config.h>

#include <sys/syscall.h>
#include <unistd.h>

#include "sys/pidfd.h"

/* For older headers; the numbers are the same on every architecture. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

int pidfd_of(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

int pidfd_send(int fd, int signo)
{
	return (int)syscall(SYS_pidfd_send_signal, fd, signo, NULL, 0);
}
