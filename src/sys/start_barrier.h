/* SPDX-License-Identifier: MIT */
/* sys/start_barrier.h - a child that is forked now and runs when it is released.
 *
 * A lock's record names the command's process before the lock is taken, and the command must not run
 * before.  If the parent dies first, the child reads the end of its socket and exits. */
#ifndef SEMLOCK_SYS_START_BARRIER_H
#define SEMLOCK_SYS_START_BARRIER_H

#include <signal.h>
#include <sys/types.h>

struct start_barrier {
	pid_t pid;  /* 0: no child */
	int socket; /* one byte to the child releases it; from it comes the errno of a failed exec */
	/* Unless NULL: called in the child, with CONTEXT, if the parent has died before the release, or has cancelled it. */
	void (*abandoned)(void *context);
	void *context;
};

/* fork(2) that returns in the child only after start_barrier_open(), with all signals blocked and the mask
 * to restore in *MASK.  -1, with errno set: no child. */
pid_t start_barrier_start(struct start_barrier *barrier, sigset_t *mask);

/* In the child: the exec has failed with ERRNUM.  Does not return. */
void start_barrier_fail(const struct start_barrier *barrier, int errnum);

/* In the parent: release the child and wait for its exec.  Returns 0, the errno of the exec, or -1: the child
 * was killed before. */
int start_barrier_open(struct start_barrier *barrier);

/* In the parent: end the child, if there is one, and wait for its exit. */
void start_barrier_cancel(struct start_barrier *barrier);

#endif
