/* run/start.h - running the command while the lock is held. */
#ifndef SEMLOCK_RUN_START_H
#define SEMLOCK_RUN_START_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "sys/start_barrier.h"
#include "report/error.h"

/* How long the command may run. */
struct limit {
	int64_t time;       /* ns; 0: as long as it likes */
	int signal;         /* what it gets then ... */
	int64_t kill_after; /* ... and SIGKILL so many ns after that, or after it was told to end by
			       a signal to us; 0: never */
};

struct command {
	char **argv;       /* NULL-terminated; [0] is looked up in PATH */
	int *locks;        /* the descriptors that carry the locks */
	unsigned nlocks;
	bool inherit;      /* the command gets them, and keeps the lock as long as it lives */
	bool passed;       /* that is how they are open already: closed by an exec, or not */
	void (*placeholder)(void); /* instead of ARGV: what never returns */
	bool own_group;    /* the command leads a process group, which is signalled as a whole */
	struct limit limit;
	bool tie;          /* the command is killed if semlock is: nothing else holds the lock */
	bool apart;        /* it was started in memory of its own: a failed exec is told by SIGCHLD */
	struct start_barrier start_barrier;  /* where it stands already, after command_prepare() */
};

/* How the command ended. */
struct result {
	enum { ENDED_EXIT, ENDED_SIGNAL, ENDED_NOT_RUN } how;
	bool timed_out; /* the limit was reached, and it was told to end */
	bool killed;    /* ... by SIGKILL */
	int code; /* exit status, signal number, or errno of the exec */
	bool ours; /* the signal that ended it was sent to semlock as well */
};

/* Start the command, but keep it from running until command_supervise(): a lock's record has to
 * name it before.  It inherits what is open now; of the signals in UNBLOCK (or NULL), which are
 * blocked for a reason of ours, it finds none blocked.  Returns its PID, or -1 with ERROR filled. */
pid_t command_prepare(struct command *command, const sigset_t *unblock, struct error *error);

/* It will not run.  Does nothing if it was not prepared. */
void command_cancel(struct command *command);

/* Start the command and stay until it has ended.  Signals that come to us go to it; when
 * it is stopped from the keyboard, so are we.  Returns 0 with *RESULT filled, or -1 with
 * ERROR filled when there can be no process. */
int command_supervise(struct command *command, struct result *result, struct error *error);

/* Become the command.  Returns only if that fails, with errno set. */
void command_become(const struct command *command);

#endif
