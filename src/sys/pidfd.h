/* sys/pidfd.h - a process by a descriptor: after its end, a signal reaches no other process. */
#ifndef SEMLOCK_SYS_PIDFD_H
#define SEMLOCK_SYS_PIDFD_H

#include <sys/types.h>

/* A descriptor of the process PID, readable once that has ended; closed at exec.  Returns -1 with errno
 * set: ESRCH, no such process; ENOSYS, no pidfds in this kernel. */
int pidfd_of(pid_t pid);

/* Send the signal SIGNO to the process of FD.  Returns 0, or -1 with errno set. */
int pidfd_send(int fd, int signo);

#endif
