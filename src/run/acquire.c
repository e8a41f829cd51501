/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "report/status_fd.h"
#include "owners/owners.h"
#include "run/run.h"
#include "run/progress.h"
#include "preempt/preempt.h"
#include "lock/take.h"
#include "sys/process.h"
#include "sys/signals.h"

/* What is known while the locks are being taken. */
struct acquisition {
	const struct request *request;
	struct wait_options wait;
	struct progress progress;
	int64_t since;        /* when semlock began, ns on clock_now()'s clock; 0: not asked for */
	enum nesting nesting; /* a descriptor that this process has inherited holds the lock */
	int fd;               /* that descriptor */
	bool said;            /* that --queue-max is not kept */
	struct error error;
};

/* Is the length of the wait, or of the hold, asked for? */
static bool is_timed(const struct request *request)
{
	return request->verbose || request->min_hold > 0 || status_fd_wanted;
}

static struct acquired end_with(int status)
{
	return (struct acquired){ACQUIRED_NOTHING, status};
}

static struct acquired taken(const struct acquisition *acquisition)
{
	const struct request *request = acquisition->request;
	int64_t since = acquisition->since, waited = since == 0 ? 0 : clock_now() - since;
	long long seconds = waited / SECOND, us = waited % SECOND / 1000;

	if (request->verbose && request->as_flock) /* in flock(1)'s words, and on its stream */
		tell(STDOUT_FILENO, "getting lock took %lld.%06lld seconds", seconds, us);
	else if (request->verbose)
		complain("%s: taken after %lld.%06lld s", request->label, seconds, us);
	if (since != 0) {
		held_begins();
		status_fd_event("acquired waited=" STATUS_FD_SECONDS, STATUS_FD_TIME(waited));
	}
	return (struct acquired){ACQUIRED_LOCKS, 0};
}

/* ---- this process has inherited the lock ---- */

/* Does the wait end by itself?  Then a lock that is inherited is busy, like any other. */
static bool wait_ends(const struct request *request)
{
	return request->nonblocking || request->wait >= 0 || request->queue_max == 0;
}

/* Not as flock, nor with --replace or --toggle. */
static bool may_nest(const struct request *request)
{
	return !request->as_flock && request->preempt == PREEMPT_NOT;
}

/* To wait for LOCK would be to wait for this process. */
COLD static struct acquired held_by_us(const struct acquisition *acquisition,
    const struct lock *lock)
{
	const struct request *request = acquisition->request;
	enum nesting nesting = acquisition->nesting;
	bool can_nest = nesting != NESTING_LESS && lock->spec->name != NULL &&
	                request->nlocks == 1 && request->command != NULL;
	struct error error;

	if (wait_ends(request))
		return end_with(result_of_busy(request, lock, BUSY_INHERITED));
	error_plain(&error, ERROR_USAGE,
	    "held %sby descriptor %d, which this command has inherited: %s%s",
	    nesting == NESTING_LESS ? "shared, in part, or as a slot, " : "", acquisition->fd,
	    nesting == NESTING_LESS ? "waiting for it in this mode would never end"
	    : nesting == NESTING_AGAIN
		? "waiting for it would never end if another process waited between the two"
		: "waiting for it would never end",
	    can_nest ? "; --nested runs the command under that lock" : "");
	return end_with(result_of_error(request, lock, &error));
}

static bool is_on_server(const struct lock *lock)
{
	return lock->spec->method->family == ON_SERVER;
}

/* The command has not inherited SEMLOCK_PASSWORD: ask a server only for what this process does not
 * hold: a slot that may be free, or a shared lock. */
static bool may_ask(struct acquisition *acquisition, const struct lock *lock)
{
	if (acquisition->nesting == NESTING_NONE || !wait_ends(acquisition->request))
		return acquisition->nesting == NESTING_NONE;
	if (acquisition->nesting != NESTING_AGAIN)
		acquisition->wait.try_once = true;
	return acquisition->nesting == NESTING_AGAIN || lock->spec->slots > 0;
}

/* With --nested, and for a lock on a server, what is inherited is looked at before LOCK is asked
 * for.  Returns false with *INSTEAD filled if LOCK is not to be asked for. */
COLD static bool look_before(struct acquisition *acquisition, const struct lock *lock,
    struct acquired *instead)
{
	acquisition->nesting = nesting_inherited(lock, &acquisition->fd);
	if (acquisition->request->nested &&
	    (acquisition->nesting == NESTING_AGAIN || acquisition->nesting == NESTING_COVERS)) {
		if (is_timed(acquisition->request))
			held_begins();
		status_fd_event("nested");
		*instead = (struct acquired){ACQUIRED_BY_INHERITANCE, 0};
	} else if (is_on_server(lock) && !may_ask(acquisition, lock))
		*instead = held_by_us(acquisition, lock);
	else
		return true;
	return false;
}

/* ---- the wait ---- */

static void end_by_signal(int signo)
{
	_exit(128 + signo);
}

/* Process 1 of a container receives only the signals that it has a handler for: TERM would not end
 * its wait. */
static void heed_signals(void)
{
	static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

	for (size_t i = 0; getpid() == 1 && i < sizeof signals / sizeof *signals; i++)
		if (!signals_ignored(signals[i]))
			signal(signals[i], end_by_signal);
}

static enum when_busy begin_waiting(const struct lock *lock, void *context)
{
	struct acquisition *acquisition = context;

	heed_signals();
	if (may_nest(acquisition->request) && !is_on_server(lock))
		acquisition->nesting = nesting_inherited(lock, &acquisition->fd);
	if (acquisition->nesting >= NESTING_COVERS)
		return GIVE_UP;
	if (lock->place.unordered && acquisition->wait.places > 0 && !acquisition->said &&
	    !acquisition->request->quiet)
		complain("%s: its queue cannot be used: --queue-max is not kept, and the wait is "
			 "in the kernel's order",
		    messages_label(acquisition->request, lock));
	acquisition->said = true;
	progress_begins(&acquisition->progress);
	/* A writer that queues between the two would wait for the inherited lock, and we for the
	 * writer. */
	return acquisition->nesting == NESTING_NONE ? WAIT : WAIT_PAST_QUEUE;
}

static int64_t tick(const struct lock *lock, void *context)
{
	struct acquisition *acquisition = context;

	return progress_tick(&acquisition->progress, lock);
}

static void begin(struct acquisition *acquisition, const struct request *request)
{
	*acquisition = (struct acquisition){
	    .request = request,
	    .progress.verbose = request->verbose && !request->as_flock,
	    .progress.notes_place = request->log != NULL,
	    /* most that are stopped end within it */
	    .progress.delay = request->preempt != PREEMPT_NOT ? SECOND : 0,
	    .progress.live = !request->quiet && !request->verbose && !request->as_flock,
	    .wait =
		{
		    .deadline = {.never = true},
		    .try_once =
			request->nonblocking || request->wait == 0 || request->queue_max == 0,
		    .first = request->first,
		    .places = request->queue_max > 0 ? (unsigned)request->queue_max : 0,
		    .waits = begin_waiting,
		    .tick = tick,
		    .context = acquisition,
		},
	};
	if (is_timed(request))
		acquisition->since = clock_now(); /* a process's first use of the clock is slow */
	if (request->wait >= 0)
		acquisition->wait.deadline = deadline_after(request->wait);
	acquisition->progress.deadline = acquisition->wait.deadline;
}

static enum outcome take(struct acquisition *acquisition, struct lock *locks,
    const struct lock **culprit)
{
	const struct request *request = acquisition->request;

	if (request->preempt != PREEMPT_NOT)
		return preempt_take(request, locks, &acquisition->wait, &acquisition->error);
	if (request->nlocks > 1)
		return lockset_take(locks, request->nlocks, &acquisition->wait, culprit,
		    &acquisition->error);
	return lock_take(locks, &acquisition->wait, &acquisition->error);
}

/* With -n there was no wait, and what is inherited was not looked at: LOCK may be taken past the
 * queue. */
COLD static bool may_skip_queue(struct acquisition *acquisition, const struct lock *lock)
{
	if (!lock->place.queued || lock->busy != BUSY_NOW ||
	    lock->spec->method->family != OF_KERNEL || !may_nest(acquisition->request) ||
	    acquisition->wait.past_queue)
		return false;
	acquisition->nesting = nesting_inherited(lock, &acquisition->fd);
	acquisition->wait.past_queue =
	    acquisition->nesting == NESTING_BESIDE || acquisition->nesting == NESTING_AGAIN;
	return acquisition->wait.past_queue;
}

struct acquired acquire(const struct request *request, struct lock *locks)
{
	const struct lock *culprit = locks;
	struct acquisition acquisition;
	struct acquired instead;
	enum outcome outcome;

	begin(&acquisition, request);
	if ((request->nested || is_on_server(locks)) && may_nest(request) &&
	    !look_before(&acquisition, locks, &instead))
		return instead;
	do
		outcome = take(&acquisition, locks, &culprit);
	while (outcome == BUSY && may_skip_queue(&acquisition, culprit));
	if (acquisition.progress.begun)
		progress_ends(&acquisition.progress);
	if (outcome == TAKEN)
		return taken(&acquisition);
	if (outcome == FAILED)
		return end_with(result_of_error(request, culprit, &acquisition.error));
	if (culprit->busy == BUSY_INHERITED)
		return held_by_us(&acquisition, culprit);
	/* waiting longer would not help */
	if (acquisition.error.kind != ERROR_NONE && !request->quiet)
		complain("%s: %s", messages_label(request, culprit), acquisition.error.text);
	return end_with(result_of_busy(request, culprit, culprit->busy));
}
