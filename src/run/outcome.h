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
	RUN_GOES_ON, /* or has nothing to say: the caller's descriptor is locked */
	RUN_BUSY,    /* the lock was not to be had */
	RUN_FAILED,  /* semlock itself */
	RUN_ENDED    /* the command has ended, or could not be executed */
};

struct run_outcome {
	enum run_end end;
	enum busy_reason busy; /* RUN_BUSY: why */
	int failure;           /* RUN_FAILED: the exit status */
	struct result command; /* RUN_ENDED: how */
	bool lost;             /* the lock was lost while the command ran */
	const char *hold_end;  /* why a hold in the background has ended; NULL */
	int signal;            /* semlock has received it, and is to die of it; 0: none */
	pid_t pid;             /* the command's process; 0: it did not run */
	int slot;              /* SEMLOCK_SLOT; -1: none */
	int64_t waited, held;  /* ns; 0: not asked for */
};

/* What messages call LOCK; the text may be overwritten by the next call. */
const char *messages_label(const struct request *request, const struct lock *lock);

/* LOCK is busy for REASON: write the event; say so, and who holds it, on a terminal or with
 * --verbose, but never with -q. */
void outcome_busy(struct run_outcome *outcome, const struct request *request,
    const struct lock *lock, enum busy_reason reason);

/* semlock fails with ERROR of LOCK (NULL: of the lock that was named first): print it, and write
 * the event. */
void outcome_failed(struct run_outcome *outcome, const struct request *request,
    const struct lock *lock, const struct error *error);

/* The command has ended, as OUTCOME->command says, or was not executed, and the lock has been
 * given back: write the events; a message too, if the command never ran, or --run-timeout has ended
 * it.  FIRST is the lock that was named first. */
void outcome_ended(const struct run_outcome *outcome, const struct request *request,
    const struct lock *first);

/* One of the COUNT released LOCKS had been removed, or replaced by a program that ignores it:
 * another command may have run beside this one.  If so: a message, and the event. */
void outcome_if_lost(struct run_outcome *outcome, const struct request *request,
    const struct lock *locks, unsigned count);

/* Is anything of it to be told, but the exit status? */
bool outcome_speaks(const struct run_outcome *outcome, const struct request *request);

/* The outcome in one word or two, for --log: "exit 3", "timeout", "lost". */
void outcome_text(const struct run_outcome *outcome, char *text, size_t size);

/* The exit status of semlock. */
int outcome_status(const struct run_outcome *outcome, const struct request *request);

/* Die of OUTCOME's signal, if there is one, without a core: a shell ends its loop at Ctrl-C, and
 * systemd takes SIGTERM for a clean stop, only if semlock dies of it too.  Returns STATUS if there
 * is none, or it does not kill, as process 1 of a container. */
int outcome_die(const struct run_outcome *outcome, int status);

#endif
