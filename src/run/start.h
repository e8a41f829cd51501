/* SPDX-License-Identifier: MIT */
/* run/start.h - starting the command while the lock is held. */
#ifndef SEMLOCK_RUN_START_H
#define SEMLOCK_RUN_START_H

#include <stdint.h>

#include "lock/lock.h"
#include "report/error.h"
#include "run/hold.h"

/* How long the command may run. */
struct limit {
	int64_t time;       /* ns; 0: no limit */
	int signal;         /* sent when TIME is up */
	int64_t kill_after; /* ns from SIGNAL, or from a SIGTERM, SIGINT, SIGHUP or SIGQUIT to
	                     * semlock, to SIGKILL; 0: no SIGKILL */
};

/* How the command is started. */
enum {
	INHERITS_LOCKS = 1,    /* it gets the locks' descriptors, and keeps them while it lives */
	DIES_WITH_SEMLOCK = 2, /* it is killed if semlock is: nothing else holds the lock */
	LEADS_GROUP = 4,       /* a process group of its own, which is signalled as a whole */
	NAMED_BY_LOCK = 8      /* a lock names its PID: reap it after the release, not before */
};

enum command_state {
	COMMAND_NEW,
	COMMAND_AT_BARRIER, /* forked; waits for command_start(), or ends with command_reap() */
	COMMAND_EXECS,      /* runs in memory of its own: SIGCHLD brings the errno of its exec */
	COMMAND_RUNS,
	COMMAND_ENDED, /* command_reap() has to wait for it */
	COMMAND_REAPED
};

struct command {
	char **argv;        /* ends with NULL; [0] is looked up in PATH */
	struct hold *hold;  /* instead of ARGV: the placeholder of --hold; or NULL */
	struct lock *locks; /* what it runs under */
	unsigned nlocks;
	unsigned policy; /* INHERITS_LOCKS, ... */
	pid_t group;     /* the process group that it goes into, unless LEADS_GROUP; 0: it stays */
	struct limit limit;

	enum command_state state;
	pid_t pid;   /* of its process, once there is one */
	int barrier; /* COMMAND_AT_BARRIER: a socket; one byte releases the child, and from it
	              * comes the errno of a failed exec */
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
	bool orphaned; /* --die-with-parent: the parent has ended */
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

#endif
