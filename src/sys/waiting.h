/* SPDX-License-Identifier: MIT */
/* sys/waiting.h - waiting for descriptors, for a moment, and for the end of a process that is not a
 * child.  If a sandbox refuses a call, that is an error, never a busy loop. */
#ifndef SEMLOCK_SYS_WAITING_H
#define SEMLOCK_SYS_WAITING_H

#include <poll.h>
#include <stdbool.h>
#include <sys/types.h>

#include "sys/deadline.h"

/* poll(2) the COUNT descriptors FDS until UNTIL, repeated while a signal interrupts it.  Returns
 * how many are ready; 0 when UNTIL has passed; or -1 with errno set and all revents 0: poll(2) is
 * refused, and always will be.  Then the caller must end its wait with an error. */
int poll_until(struct pollfd *fds, nfds_t count, struct deadline until);

/* In a thread that keeps a lock: poll(2) of the COUNT descriptors FDS for at most TIMEOUT ms (-1:
 * forever).  FDS[END] is a pipe; its end of file tells the thread to end.  If poll(2) is refused,
 * sleep for a tenth of a second at most, and set all revents to 0: if the thread ended instead,
 * nobody would keep the lock, or notice its loss.  Returns whether the thread must end. */
bool thread_sleeps(struct pollfd *fds, nfds_t count, nfds_t end, int timeout);

/* Sleep for DURATION ns with nanosleep(2), or, where that is refused, with poll(2), in whole
 * milliseconds.  Returns 0, or -1 with errno set: EINTR if a signal has come; anything else if both
 * calls are refused. */
int nap(int64_t duration);

/* A process that is watched, and not mistaken for another that gets its PID later. */
struct watched {
	pid_t pid;                  /* 0: no process, which never ends */
	unsigned long long started; /* ticks after boot; 0: not known */
	int pidfd;                  /* readable once it has ended; -1: none, so look at /proc */
};

/* Watch process PID (0: none).  Always fills WATCHED.  Returns 0, or -1 if no such process
 * exists. */
int watched_begin(struct watched *watched, pid_t pid);

/* Has the watched process ended? */
bool watched_ended(const struct watched *watched);

/* When to call watched_ended() next; never, if poll(2) on the pidfd reports the end. */
struct deadline watched_next_look(const struct watched *watched);

#endif
