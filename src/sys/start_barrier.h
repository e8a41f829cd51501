/* sys/start_barrier.h - a child that is there, and runs only when it is told to.
 *
 * A lock's record has to name the command's process before the lock is taken, and the
 * command must not run before.  If we die first, the child sees the end of its input, and
 * never runs. */
#ifndef SEMLOCK_SYS_START_BARRIER_H
#define SEMLOCK_SYS_START_BARRIER_H

#include <signal.h>
#include <sys/types.h>

struct start_barrier {
	pid_t pid;  /* 0: nobody stands there */
	int socket; /* the word to go one way, the errno of a failed exec the other */
};

/* Like fork(2), but returns in the child only when start_barrier_open() was called: with every
 * signal blocked, *MASK being what to give back.  -1 with errno set: no child. */
pid_t start_barrier_start(struct start_barrier *start_barrier, sigset_t *mask);

/* In the child: the exec has failed with ERRNUM.  Does not return. */
void start_barrier_fail(const struct start_barrier *start_barrier, int errnum);

/* In the parent: go.  Waits until the child has execed.  Returns 0, the errno of the exec,
 * or -1: it was killed before. */
int start_barrier_open(struct start_barrier *start_barrier);

/* In the parent: not wanted any more.  Waits until the child has gone. */
void start_barrier_cancel(struct start_barrier *start_barrier);

#endif
