#include <config.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "run/result.h"
#include "report/status_fd.h"
#include "run/messages.h"
#include "run/min_hold.h"
#include "owners/nesting.h"
#include "run/acquire.h"
#include "run/progress.h"
#include "preempt/preempt.h"
#include "lock/lockset.h"
#include "sys/process.h"
#include "sys/signals.h"

/* What is known while the locks are being taken. */
struct acquisition {
	const struct request *request;
	struct wait_options wait;
	struct progress progress;
	int64_t since;        /* when semlock began, ns on clock_now()'s clock; 0: not asked for */
	bool may_nest;        /* look for NESTING; not as flock, nor with --replace or --toggle */
	enum nesting nesting; /* a descriptor that this process has inherited holds the lock */
	int fd;               /* that descriptor */
	bool toggled;         /* --toggle has ended the holder */
	const struct lock *culprit; /* the lock that could not be taken */
	struct error error;
};

static int report_busy(const struct acquisition *acquisition, const struct lock *lock)
{
	const struct request *request = acquisition->request;
	bool at_once = acquisition->wait.try_once;

	messages_busy(request, lock, !at_once);
	status_fd_event(at_once ? "busy" : "timeout");
	return request->busy_status;
}

/* As flock, in flock(1)'s words and on its stream. */
static void say_taken(const struct request *request, int64_t took)
{
	long long seconds = took / SECOND, us = took % SECOND / 1000;

	if (request->as_flock)
		tell(STDOUT_FILENO, "getting lock took %lld.%06lld seconds", seconds, us);
	else
		complain("%s: taken after %lld.%06lld s", request->label, seconds, us);
}

static int report_taken(const struct acquisition *acquisition)
{
	int64_t since = acquisition->since, waited = since == 0 ? 0 : clock_now() - since;

	if (acquisition->request->verbose)
		say_taken(acquisition->request, waited);
	if (since != 0) {
		held_begins();
		status_fd_event("acquired waited=" STATUS_FD_SECONDS, STATUS_FD_TIME(waited));
	}
	return ACQUIRED;
}

/* Does the wait end by itself?  Then a lock that an ancestor holds is busy, like any other. */
static bool wait_ends(const struct request *request)
{
	return (request->nonblocking || request->wait >= 0 || request->queue_max == 0) && request->preempt == PREEMPT_NOT;
}

/* Waiting for LOCK would never end: the holder, named BY, waits for this command. */
static int refuse_nesting(const struct request *request, const struct lock *lock, enum nesting nesting,
    const char *by)
{
	bool can_nest = nesting != NESTING_LESS && lock->spec->name != NULL && request->nlocks == 1 && request->command != NULL;
	struct error error;

	error_say(&error, ERROR_USAGE, "held %sby %s: %s%s",
	    nesting == NESTING_LESS ? "shared, in part, or as a slot, " : "", by,
	    nesting == NESTING_LESS ? "waiting for it in this mode would never end"
	    : nesting == NESTING_QUEUES
		? "waiting for it would never end if another process waited between the two"
		: "waiting for it would never end",
	    can_nest ? "; --nested runs the command under that lock" : "");
	return result_of_error(request, lock, &error);
}

static int refuse_under(const struct request *request, const struct lock *lock, enum nesting nesting, pid_t pid)
{
	struct process holder;
	char command[128], by[224];

	process_read(pid, &holder);
	process_command(&holder, command, sizeof command, 40);
	snprintf(by, sizeof by, "process %ld (%s), an ancestor of this one", (long)pid, command);
	return refuse_nesting(request, lock, nesting, by);
}

/* Returns ACQUIRED, UNDER_ANCESTOR, or the status of a lock that must not be waited for. */
static int check_nesting(struct acquisition *acquisition, const struct lock *locks)
{
	const struct request *request = acquisition->request;
	enum nesting nesting;
	pid_t holder;

	for (unsigned i = 0; i < request->nlocks; i++) {
		nesting = nesting_look(&locks[i], &holder);
		if (nesting == NESTING_NONE)
			continue;
		/* A writer that queues between the two would wait for the outer lock, and the inner one for
		 * the writer: skip the queue. */
		if (nesting == NESTING_SHARES)
			acquisition->wait.passes = true;
		else if (request->nested && nesting != NESTING_LESS)
			return UNDER_ANCESTOR;
		else if (!wait_ends(request))
			return refuse_under(request, &locks[i], nesting, holder);
		else if (nesting != NESTING_QUEUES) { /* with that, the lock may come free */
			acquisition->wait.try_once = true;
			/* Do not ask the server, unless a slot may be free: the command has not
			 * inherited SEMLOCK_PASSWORD. */
			if ((locks[i].spec->method->can & HAS_LEASE) != 0 && locks[i].spec->slots == 0)
				return report_busy(acquisition, &locks[i]);
		}
	}
	return ACQUIRED;
}

static void end_by_signal(int signo)
{
	_exit(128 + signo);
}

/* Process 1 of a container receives only the signals that it has a handler for: TERM would not end its wait. */
static void heed_signals(void)
{
	static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

	for (size_t i = 0; getpid() == 1 && i < sizeof signals / sizeof *signals; i++)
		if (!signals_ignored(signals[i]))
			signal(signals[i], end_by_signal);
}

static void begin_waiting(const struct lock *lock, void *context)
{
	struct acquisition *acquisition = context;

	heed_signals();
	if (acquisition->may_nest)
		acquisition->nesting = nesting_inherited(lock, &acquisition->fd);
	if (acquisition->nesting == NESTING_SHARES)
		acquisition->wait.passes = true;
	if (acquisition->nesting > NESTING_SHARES)
		acquisition->wait.deadline = deadline_after(0);
	else
		progress_waits(lock, &acquisition->progress);
}

/* A descriptor that this process has inherited holds LOCK. */
static int busy_by_inheritance(struct acquisition *acquisition, const struct lock *lock)
{
	const struct request *request = acquisition->request;
	char by[64];

	if (request->nested && acquisition->nesting != NESTING_LESS)
		return UNDER_ANCESTOR;
	if (wait_ends(request)) {
		acquisition->wait.try_once = true;
		return report_busy(acquisition, lock);
	}
	snprintf(by, sizeof by, "descriptor %d, which this command has inherited", acquisition->fd);
	return refuse_nesting(request, lock, acquisition->nesting, by);
}

static enum outcome take_all(struct acquisition *acquisition, struct lock *locks)
{
	const struct request *request = acquisition->request;
	const struct wait_options *wait = &acquisition->wait;

	acquisition->culprit = locks;
	if (request->preempt != PREEMPT_NOT)
		return preempt_take(request, locks, wait, &acquisition->toggled, &acquisition->error);
	if (request->nlocks > 1)
		return lockset_take(locks, request->nlocks, wait, &acquisition->culprit, &acquisition->error);
	return lock_take(locks, wait, &acquisition->error);
}

static int take_locks(struct acquisition *acquisition, struct lock *locks)
{
	const struct request *request = acquisition->request;
	enum outcome outcome = take_all(acquisition, locks);
	const struct lock *culprit = acquisition->culprit;
	const struct error *error = &acquisition->error;

	progress_end();
	if (outcome == TAKEN)
		return report_taken(acquisition);
	if (outcome == FAILED)
		return result_of_error(request, culprit, error);
	if (acquisition->toggled)
		return EXIT_SUCCESS;
	if (acquisition->nesting > NESTING_SHARES)
		return busy_by_inheritance(acquisition, culprit);
	if (culprit->place.crowded)
		acquisition->wait.try_once = true; /* busy, not timeout */
	if (error->kind != ERROR_NONE && !request->quiet)
		complain("%s: %s", messages_label(request, culprit), error->text); /* waiting longer would not help */
	return report_busy(acquisition, culprit);
}

int acquire(const struct request *request, struct lock *locks)
{
	struct acquisition acquisition = {
	    .request = request,
	    .may_nest = !request->as_flock && request->preempt == PREEMPT_NOT,
	    .progress.verbose = request->verbose && !request->as_flock,
	    .progress.live = !request->quiet && !request->verbose && !request->as_flock,
	    .wait = {
		.deadline = {.never = true},
		.try_once = request->nonblocking || request->wait == 0 || request->queue_max == 0,
		.places = request->queue_max > 0 ? (unsigned)request->queue_max : 0,
		.waits = begin_waiting,
		.context = &acquisition,
	    },
	};
	int status = ACQUIRED;

	if (request->verbose || request->min_hold > 0 || status_fd >= 0)
		acquisition.since = clock_now(); /* a process's first use of the clock is slow */
	if (request->wait >= 0)
		acquisition.wait.deadline = deadline_after(request->wait);
	acquisition.progress.deadline = acquisition.wait.deadline;
	if (!request->as_flock && (getenv("SEMLOCK_LOCK") != NULL || getenv("SEMLOCK_HELD") != NULL))
		status = check_nesting(&acquisition, locks);
	if (status == ACQUIRED)
		status = take_locks(&acquisition, locks);
	if (status == UNDER_ANCESTOR) {
		if (acquisition.since != 0)
			held_begins();
		status_fd_event("nested");
	}
	return status;
}
