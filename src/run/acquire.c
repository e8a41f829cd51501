#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "run/result.h"
#include "report/status_fd.h"
#include "run/messages.h"
#include "run/min_hold.h"
#include "run/nesting.h"
#include "run/acquire.h"
#include "run/progress.h"
#include "run/preempt.h"
#include "lock/lockset.h"

static int report_busy(const struct request *request, const struct lock *lock, const struct wait_options *wait)
{
	messages_busy(request, lock, !wait->try_once);
	status_fd_event(wait->try_once ? "busy" : "timeout");
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

/* SINCE: when semlock began, or 0: not asked for. */
static int report_taken(const struct request *request, int64_t since)
{
	int64_t waited = since == 0 ? 0 : clock_now() - since;

	if (request->verbose)
		say_taken(request, waited);
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
	bool can_nest = nesting != NESTING_LESS && lock->name != NULL && request->nlocks == 1 && request->command != NULL;
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

/* Returns ACQUIRED, or the status of a lock that must not be waited for. */
static int check_nesting(const struct request *request, const struct lock *locks,
    struct wait_options *wait, bool *under_ancestor)
{
	enum nesting nesting;
	pid_t holder;

	for (unsigned i = 0; i < request->nlocks; i++) {
		nesting = nesting_look(&locks[i], &holder);
		if (nesting == NESTING_NONE)
			continue;
		/* A writer that queues between the two would wait for the outer lock, and the inner one for
		 * the writer: skip the queue. */
		if (nesting == NESTING_SHARES)
			wait->passes = true;
		else if (request->nested && nesting != NESTING_LESS)
			*under_ancestor = true;
		else if (!wait_ends(request))
			return refuse_under(request, &locks[i], nesting, holder);
		else if (nesting != NESTING_QUEUES) { /* with that, the lock may come free */
			wait->try_once = true;
			/* Do not ask the server, unless a slot may be free: the command has not
			 * inherited SEMLOCK_PASSWORD. */
			if (locks[i].method->server != NULL && locks[i].slots == 0)
				return report_busy(request, &locks[i], wait);
		}
	}
	return ACQUIRED;
}

/* The context of begin_waiting(). */
struct waiting {
	struct progress progress;
	struct wait_options *wait;
	bool may_nest;        /* look for NESTING; not as flock, nor with --replace or --toggle */
	enum nesting nesting; /* a descriptor that this process has inherited holds the lock */
	int fd;               /* that descriptor */
};

static void begin_waiting(const struct lock *lock, void *context)
{
	struct waiting *waiting = context;

	if (waiting->may_nest)
		waiting->nesting = nesting_inherited(lock, &waiting->fd);
	if (waiting->nesting == NESTING_SHARES)
		waiting->wait->passes = true;
	if (waiting->nesting > NESTING_SHARES)
		waiting->wait->deadline = deadline_after(0);
	else
		progress_waits(lock, &waiting->progress);
}

static void say_stopped(pid_t pid, const void *context)
{
	const struct request *request = context;

	if (request->verbose && !request->as_flock)
		complain("%s: stopped process %ld", request->label, (long)pid);
	status_fd_event("stopped %ld", (long)pid);
}

/* --replace, --toggle. */
static int take_by_preemption(const struct request *request, struct lock *lock, const struct waiting *waiting,
    int64_t since)
{
	const struct wait_options *wait = waiting->wait;
	struct preemption preemption = {
	    .signal = request->preempt_signal,
	    .kill_after = request->kill_after,
	    .wait = wait,
	    .tell = say_stopped,
	    .context = request,
	};
	struct error error = {0};
	enum outcome outcome = request->preempt == PREEMPT_TOGGLE ? toggle_take(lock, &preemption, &error)
							   : replace_take(lock, &preemption, &error);

	progress_end();
	if (outcome == TAKEN)
		return report_taken(request, since);
	if (outcome == BUSY)
		return preemption.done ? EXIT_SUCCESS : report_busy(request, lock, wait);
	return result_of_error(request, lock, &error);
}

/* A descriptor that this process has inherited holds LOCK. */
static int busy_by_inheritance(const struct request *request, const struct lock *lock,
    const struct waiting *waiting, bool *under_ancestor)
{
	char by[64];

	if (request->nested && waiting->nesting != NESTING_LESS) {
		*under_ancestor = true;
		return ACQUIRED;
	}
	if (wait_ends(request)) {
		waiting->wait->try_once = true;
		return report_busy(request, lock, waiting->wait);
	}
	snprintf(by, sizeof by, "descriptor %d, which this command has inherited", waiting->fd);
	return refuse_nesting(request, lock, waiting->nesting, by);
}

static int take_locks(const struct request *request, struct lock *locks, struct waiting *waiting,
    int64_t since, bool *under_ancestor)
{
	const struct wait_options *wait = waiting->wait;
	const struct lock *culprit = locks;
	struct error error = {0};
	enum outcome outcome = request->nlocks > 1
				   ? lockset_take(locks, request->nlocks, wait, &culprit, &error)
				   : lock_take(locks, wait, &error);

	progress_end();
	if (outcome == TAKEN)
		return report_taken(request, since);
	if (outcome == BUSY && waiting->nesting > NESTING_SHARES)
		return busy_by_inheritance(request, culprit, waiting, under_ancestor);
	if (culprit->crowded)
		waiting->wait->try_once = true; /* busy, not timeout */
	if (outcome == BUSY && error.kind != ERROR_NONE && !request->quiet)
		complain("%s: %s", messages_label(request, culprit), error.text); /* waiting longer would not help */
	return outcome == BUSY ? report_busy(request, culprit, wait) : result_of_error(request, culprit, &error);
}

int acquire(const struct request *request, struct lock *locks, bool *under_ancestor)
{
	struct waiting waiting = {
	    .may_nest = !request->as_flock && request->preempt == PREEMPT_NOT,
	    .progress.verbose = request->verbose && !request->as_flock,
	    .progress.live = !request->quiet && !request->verbose && !request->as_flock,
	};
	struct wait_options wait = {
	    .deadline = {.never = true},
	    .try_once = request->nonblocking || request->wait == 0 || request->queue_max == 0,
	    .places = request->queue_max > 0 ? (unsigned)request->queue_max : 0,
	    .waits = begin_waiting,
	    .context = &waiting,
	};
	bool timed = request->verbose || request->min_hold > 0 || status_fd >= 0;
	int64_t since = timed ? clock_now() : 0; /* a process's first use of the clock is slow */
	int status = ACQUIRED;

	if (request->wait >= 0)
		wait.deadline = deadline_after(request->wait);
	waiting.wait = &wait;
	waiting.progress.deadline = wait.deadline;
	if (!request->as_flock && (getenv("SEMLOCK_LOCK") != NULL || getenv("SEMLOCK_HELD") != NULL))
		status = check_nesting(request, locks, &wait, under_ancestor);
	if (status == ACQUIRED && !*under_ancestor)
		status = request->preempt != PREEMPT_NOT ? take_by_preemption(request, locks, &waiting, since)
						 : take_locks(request, locks, &waiting, since, under_ancestor);
	if (*under_ancestor) {
		if (timed)
			held_begins();
		status_fd_event("nested");
	}
	return status;
}
