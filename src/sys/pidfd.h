/* sys/pidfd.h - a process by a descriptor: once it has ended, what is sent to it reaches nobody. */
#ifndef SEMLOCK_SYS_PIDFD_H
#define SEMLOCK_SYS_PIDFD_H

#include <sys/types.h>

/* A descriptor of the process PID, which becomes readable at its end; closed at exec.  Returns -1
 * with errno set: ESRCH, there is no such process; ENOSYS, there are no such descriptors. */
int pidfd_of(pid_t pid);

/* Send the signal SIGNO to the process of FD.  Returns 0, or -1 with errno set. */
int pidfd_send(int fd, int signo);

#endif
