/* gate.h - a child that is there, and runs only when it is told to.
 *
 * A lock's record has to name the command's process before the lock is taken, and the
 * command must not run before.  If we die first, the child sees the end of its input, and
 * never runs. */
#ifndef SEMLOCK_GATE_H
#define SEMLOCK_GATE_H

#include <signal.h>
#include <sys/types.h>

struct gate {
	pid_t pid;  /* 0: nobody stands there */
	int socket; /* the word to go one way, the errno of a failed exec the other */
};

/* Like fork(2), but returns in the child only when gate_open() was called: with every
 * signal blocked, *MASK being what to give back.  -1 with errno set: no child. */
pid_t gate_start(struct gate *gate, sigset_t *mask);

/* In the child: the exec has failed with ERRNUM.  Does not return. */
void gate_fail(const struct gate *gate, int errnum);

/* In the parent: go.  Waits until the child has execed.  Returns 0, the errno of the exec,
 * or -1: it was killed before. */
int gate_open(struct gate *gate);

/* In the parent: not wanted any more.  Waits until the child has gone. */
void gate_cancel(struct gate *gate);

#endif
