/* SPDX-License-Identifier: MIT */
/* run/outcome.h - how a run ended.  From one struct come the exit status, the message on standard
 * error, the events of --status-fd and the line of --log. */
#ifndef SEMLOCK_RUN_OUTCOME_H
#define SEMLOCK_RUN_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/request.h"
#include "lock/lock.h"
#include "report/error.h"
#include "run/start.h"

enum run_end {
	RUN_GOES_ON, /* or nothing to report: a caller's descriptor stays locked */
	RUN_BUSY,    /* the lock was not taken in time */
	RUN_FAILED,  /* semlock itself failed */
	RUN_ENDED    /* the command has ended, or could not be run */
};

struct run_outcome {
	enum run_end end;
	enum busy_reason busy; /* RUN_BUSY: why */
	int failure;           /* RUN_FAILED: the exit status */
	struct result command; /* RUN_ENDED: how */
	bool lost;             /* the lock was lost while the command ran */
	const char *hold_end;  /* why a background hold has ended; NULL: no such hold */
	int signal;            /* semlock received this signal, and will die of it; 0: none */
	pid_t pid;             /* the command's process; 0: it did not run */
	int slot;              /* SEMLOCK_SLOT; -1: none */
	int64_t waited, held;  /* ns; 0: not asked for */
};

/* The name of LOCK in messages; the next call may overwrite it. */
const char *messages_label(const struct request *request, const struct lock *lock);

/* LOCK is busy for REASON: fill OUTCOME and, unless REASON is BUSY_TOGGLED, write the event.  On a
 * terminal, or with --verbose, but never with -q, also print the reason and the holder. */
void outcome_busy(struct run_outcome *outcome, const struct request *request,
    const struct lock *lock, enum busy_reason reason);

/* semlock fails with ERROR for LOCK (NULL: the first one named): fill OUTCOME, print ERROR and
 * write the event. */
void outcome_failed(struct run_outcome *outcome, const struct request *request,
    const struct lock *lock, const struct error *error);

/* The command has ended as OUTCOME->command says, or could not be run, and the lock is released:
 * write the events.  Print a message if the command never ran or --run-timeout ended it.  FIRST is
 * the lock named first. */
void outcome_ended(const struct run_outcome *outcome, const struct request *request,
    const struct lock *first);

/* Was one of the COUNT LOCKS removed while it was held, or replaced by a program that ignores it?
 * Then another command may have run at the same time: print that the lock was lost, and write the
 * event. */
void outcome_if_lost(struct run_outcome *outcome, const struct request *request,
    const struct lock *locks, unsigned count);

/* Is there anything to report besides the exit status? */
bool outcome_speaks(const struct run_outcome *outcome, const struct request *request);

/* The outcome in a word or two, for --log: "exit 3", "timeout", "lost". */
void outcome_text(const struct run_outcome *outcome, char *text, size_t size);

/* semlock's exit status. */
int outcome_status(const struct run_outcome *outcome, const struct request *request);

/* If STATUS is 128 plus OUTCOME's signal, die of that signal, without a core dump: only then does a
 * shell end its loop at Ctrl-C, and systemd count SIGTERM as a clean stop.  Otherwise return
 * STATUS; also if the signal does not kill, as in process 1 of a container. */
int outcome_die(const struct run_outcome *outcome, int status);

#endif
