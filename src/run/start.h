/* SPDX-License-Identifier: MIT */
/* run/start.h - starts the command while the lock is held. */
#ifndef SEMLOCK_RUN_START_H
#define SEMLOCK_RUN_START_H

#include <stdint.h>

#include "lock/lock.h"
#include "report/error.h"
#include "hold/hold.h"

/* How long the command may run. */
struct limit {
	int64_t time;       /* ns; 0: no limit */
	int signal;         /* sent when TIME is up */
	int64_t kill_after; /* ns from SIGNAL, or from a SIGTERM, SIGINT, SIGHUP or SIGQUIT to
	                     * semlock, to SIGKILL; 0: no SIGKILL */
};

/* How the command is started. */
enum {
	INHERITS_LOCKS = 1,    /* it inherits the locks' descriptors, and so holds the locks while
	                        * it lives */
	DIES_WITH_SEMLOCK = 2, /* killed when semlock is, because nothing else holds the lock */
	LEADS_GROUP = 4,       /* has a process group of its own, which is signalled as a whole */
	NAMED_BY_LOCK = 8      /* a lock names its PID: reap it only after the release */
};

enum command_state {
	COMMAND_NEW,
	COMMAND_AT_BARRIER, /* forked; command_start() lets it run, command_reap() ends it */
	COMMAND_EXECS,      /* in memory of its own; if its exec fails, SIGCHLD brings errno */
	COMMAND_RUNS,
	COMMAND_ENDED, /* command_reap() must still reap it */
	COMMAND_REAPED
};

struct command {
	char **argv;        /* ends with NULL; [0] is looked up in PATH */
	struct hold *hold;  /* run its placeholder (--hold) instead of ARGV; or NULL */
	struct lock *locks; /* what it runs under */
	unsigned nlocks;
	unsigned policy; /* INHERITS_LOCKS, ... */
	/* the process that the caller started, if LISTEN_PID may name it; else 0 */
	pid_t semlock;
	pid_t group; /* the process group that it goes into, unless LEADS_GROUP; 0: it stays */
	struct limit limit;

	enum command_state state;
	pid_t pid;   /* its process; 0: not started */
	int barrier; /* COMMAND_AT_BARRIER: a socket; one byte sent to it releases the child, which
	              * answers with the errno of a failed exec */
};

/* How the command ended. */
struct result {
	enum { ENDED_EXIT, ENDED_SIGNAL, ENDED_NOT_RUN } how;
	int code; /* exit status, signal number, or errno of the exec */
	enum {
		LIMIT_KEPT,
		LIMIT_REACHED, /* it was sent the limit's signal ... */
		LIMIT_KILLS    /* ... and then SIGKILL */
	} limit;
	bool asked;    /* semlock received a signal that asks to end */
	bool replaced; /* ... from another semlock: --replace, --toggle */
	bool orphaned; /* --die-with-parent: the parent has ended */
	bool received; /* semlock itself received the signal that ended the command */
};

/* Set SEMLOCK_LOCK (to LABEL, as typed), _METHOD, _MODE, _SLOT and _TOKEN for LOCK, through which
 * the first one named is held; for a lock on a server, remove SEMLOCK_PASSWORD.  Changes this
 * process's environ.  Returns 0, or -1 with ERROR filled when there is no memory. */
int environment_set(const struct lock *lock, const char *label, struct error *error);

/* Does environ have LISTEN_PID or WATCHDOG_PID?  They may name semlock, and the command gets its
 * own PID there.  If not, struct command's SEMLOCK is not needed. */
bool command_gets_pids(void);

/* Fork COMMAND, and keep it from running until command_start(): a lock's record must name its
 * process first.  It inherits the descriptors that are open now.  Returns the PID, or -1 with ERROR
 * filled. */
pid_t command_prepare(struct command *command, struct error *error);

/* Start COMMAND, or let the prepared one run.  From here on all signals are blocked.  Returns its
 * PID, to be supervised; 0 with *RESULT filled when it cannot be executed, or was killed at its
 * start barrier; -1 with ERROR filled when no process can be forked. */
pid_t command_start(struct command *command, struct result *result, struct error *error);

/* Reap COMMAND if it has ended, unless it was reaped before.  If it waits at its start barrier, end
 * it there, and reap it.  Call this after the locks are released. */
void command_reap(struct command *command);

/* Execute COMMAND in this process.  Returns only if that fails, with errno set. */
void command_become(const struct command *command);

#endif
