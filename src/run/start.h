/* SPDX-License-Identifier: MIT */
/* run/start.h - starting the command while the lock is held. */
#ifndef SEMLOCK_RUN_START_H
#define SEMLOCK_RUN_START_H

#include <stdbool.h>
#include <stdint.h>

#include "lock/lock.h"
#include "report/error.h"

/* How long the command may run. */
struct limit {
	int64_t time;       /* ns; 0: no limit */
	int signal;         /* sent when TIME is up */
	int64_t kill_after; /* ns from SIGNAL, or from a SIGTERM, SIGINT, SIGHUP or SIGQUIT to
	                     * semlock, to SIGKILL; 0: no SIGKILL */
};

struct command {
	char **argv;        /* ends with NULL; [0] is looked up in PATH */
	struct lock *locks; /* what it runs under */
	unsigned nlocks;
	/* the command inherits LOCKS' descriptors, and keeps the lock while it lives */
	bool inherit;
	bool cloexec_is_set; /* they have FD_CLOEXEC or not, as INHERIT wants */
	/* called in the child instead of executing ARGV; does not return */
	void (*placeholder)(void);
	bool own_group; /* the command leads a process group, which is signalled as a whole */
	struct limit limit;
	bool tie; /* the command is killed if semlock is: nothing else holds the lock */
	/* a lock names its PID: command_reap() after the release, and not before */
	bool named;
	pid_t unreaped; /* filled: it has ended, and command_reap() has to wait for it; else 0 */
	/* filled: the child has memory of its own; SIGCHLD brings the errno of its exec */
	bool apart;
	/* filled: the child, which waits for command_start() or command_reap(); else 0 */
	pid_t prepared;
	/* filled: a socket; one byte releases the child, and from it comes the errno of a failed
	 * exec */
	int barrier;
};

/* How the command ended. */
struct result {
	enum { ENDED_EXIT, ENDED_SIGNAL, ENDED_NOT_RUN } how;
	int code; /* exit status, signal number, or errno of the exec */
	enum {
		LIMIT_KEPT,
		LIMIT_REACHED, /* it has got the limit's signal ... */
		LIMIT_KILLS    /* ... and then SIGKILL */
	} limit;
	bool asked;    /* semlock has received a signal that asks to end */
	bool replaced; /* the signal came from another semlock: --replace, --toggle */
	bool received; /* semlock has received the signal that ended the command, too */
};

/* Set SEMLOCK_LOCK (to LABEL, as typed), _METHOD, _MODE, _SLOT and _TOKEN for LOCK, the one named
 * first; remove SEMLOCK_PASSWORD for a lock on a server.  Changes environ of this process.  Returns
 * 0, or -1 with ERROR filled when there is no memory. */
int environment_set(const struct lock *lock, const char *label, struct error *error);

/* Fork COMMAND, and keep it from running until command_start(): a lock's record has to name its
 * process before.  It inherits the descriptors that are open now.  Returns the PID, or -1 with
 * ERROR filled. */
pid_t command_prepare(struct command *command, struct error *error);

/* Start COMMAND, or let the prepared one run.  From here on all signals are blocked.  Returns its
 * PID, to be supervised; 0 with *RESULT filled when it cannot be executed; -1 with ERROR filled
 * when there can be no process. */
pid_t command_start(struct command *command, struct result *result, struct error *error);

/* Wait for COMMAND, if no call has done so yet: it has ended, or waits at its start barrier and
 * ends there.  Its locks have been released. */
void command_reap(struct command *command);

/* Execute COMMAND in this process.  Returns only if that fails, with errno set. */
void command_become(const struct command *command);

/* Wait until COMMAND, process PID, has ended.  All signals are blocked since before its start:
 * those to semlock go to the command, and when the keyboard stops it, semlock stops too.  Returns
 * how it ended; ENDED_NOT_RUN where only a signal brings the errno of its exec. */
struct result supervise(const struct command *command, pid_t pid);

#endif
