#include <config.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "run/result.h"
#include "report/status_fd.h"
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
	enum nesting nesting; /* a descriptor that this process has inherited holds the lock */
	int fd;               /* that descriptor */
	struct error error;
};

static const struct acquired locks_are_held = {ACQUIRED_LOCKS, 0};

/* Is the length of the wait, or of the hold, asked for? */
static bool is_timed(const struct request *request)
{
	return request->verbose || request->min_hold > 0 || status_fd >= 0;
}

static struct acquired end_with(int status)
{
	return (struct acquired){ACQUIRED_NOTHING, status};
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

static struct acquired taken(const struct acquisition *acquisition)
{
	int64_t since = acquisition->since, waited = since == 0 ? 0 : clock_now() - since;

	if (acquisition->request->verbose)
		say_taken(acquisition->request, waited);
	if (since != 0) {
		held_begins();
		status_fd_event("acquired waited=" STATUS_FD_SECONDS, STATUS_FD_TIME(waited));
	}
	return locks_are_held;
}

/* ---- the lock is held by an ancestor, or by this process ---- */

static struct acquired under_ancestor(const struct request *request)
{
	if (is_timed(request))
		held_begins();
	status_fd_event("nested");
	return (struct acquired){ACQUIRED_BY_ANCESTOR, 0};
}

/* Does the wait end by itself?  Then a lock that an ancestor holds is busy, like any other. */
static bool wait_ends(const struct request *request)
{
	return (request->nonblocking || request->wait >= 0 || request->queue_max == 0) && request->preempt == PREEMPT_NOT;
}

/* The holder of LOCK, named BY, waits for this command. */
COLD static struct acquired held_above(const struct request *request, const struct lock *lock, enum nesting nesting,
    const char *by)
{
	bool can_nest = nesting != NESTING_LESS && lock->spec->name != NULL && request->nlocks == 1 &&
			request->command != NULL;
	struct error error;

	if (request->nested && nesting != NESTING_LESS)
		return under_ancestor(request);
	if (wait_ends(request))
		return end_with(result_of_busy(request, lock, BUSY_INHERITED));
	error_say(&error, ERROR_USAGE, "held %sby %s: %s%s",
	    nesting == NESTING_LESS ? "shared, in part, or as a slot, " : "", by,
	    nesting == NESTING_LESS ? "waiting for it in this mode would never end"
	    : nesting == NESTING_QUEUES
		? "waiting for it would never end if another process waited between the two"
		: "waiting for it would never end",
	    can_nest ? "; --nested runs the command under that lock" : "");
	return end_with(result_of_error(request, lock, &error));
}

static void ancestor_text(pid_t pid, char *by, size_t size)
{
	struct process holder;
	char command[128];

	process_read(pid, &holder);
	process_command(&holder, command, sizeof command, 40);
	snprintf(by, size, "process %ld (%s), an ancestor of this one", (long)pid, command);
}

/* May LOCK be waited for?  If not, *REFUSED says what instead. */
COLD static bool may_wait(struct acquisition *acquisition, const struct lock *lock, struct acquired *refused)
{
	const struct request *request = acquisition->request;
	struct wait_options *wait = &acquisition->wait;
	pid_t holder;
	enum nesting nesting = nesting_look(lock, &holder);
	bool nests = request->nested && nesting != NESTING_LESS;
	char by[224];

	if (nesting == NESTING_NONE)
		return true;
	/* A writer that queues between the two would wait for the outer lock, and the inner one for
	 * the writer: skip the queue. */
	if (nesting == NESTING_SHARES)
		wait->past_queue = true;
	if (nesting == NESTING_SHARES || (nesting == NESTING_QUEUES && !nests && wait_ends(request)))
		return true; /* the lock may come free */
	/* Busy, unless the kernel says otherwise.  Do not ask a server, but for a slot that may be free: the command
	 * has not inherited SEMLOCK_PASSWORD. */
	if (!nests && wait_ends(request) && ((lock->spec->method->can & HAS_LEASE) == 0 || lock->spec->slots > 0)) {
		wait->try_once = true;
		return true;
	}
	ancestor_text(holder, by, sizeof by);
	*refused = held_above(request, lock, nesting, by);
	return false;
}

/* ---- the wait ---- */

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

/* Not as flock, nor with --replace or --toggle. */
static bool may_nest(const struct request *request)
{
	return !request->as_flock && request->preempt == PREEMPT_NOT;
}

static enum when_busy begin_waiting(const struct lock *lock, void *context)
{
	struct acquisition *acquisition = context;

	heed_signals();
	if (may_nest(acquisition->request))
		acquisition->nesting = nesting_inherited(lock, &acquisition->fd);
	if (acquisition->nesting > NESTING_SHARES)
		return GIVE_UP;
	progress_begins(&acquisition->progress);
	return acquisition->nesting == NESTING_SHARES ? WAIT_PAST_QUEUE : WAIT;
}

static int64_t tick(const struct lock *lock, void *context)
{
	struct acquisition *acquisition = context;

	return progress_tick(&acquisition->progress, lock);
}

/* LOCK could not be taken: why? */
COLD static struct acquired not_taken(struct acquisition *acquisition, const struct lock *lock)
{
	const struct request *request = acquisition->request;
	char by[64];

	if (lock->busy == BUSY_INHERITED) {
		snprintf(by, sizeof by, "descriptor %d, which this command has inherited", acquisition->fd);
		return held_above(request, lock, acquisition->nesting, by);
	}
	if (acquisition->error.kind != ERROR_NONE && !request->quiet) /* waiting longer would not help */
		complain("%s: %s", messages_label(request, lock), acquisition->error.text);
	return end_with(result_of_busy(request, lock, lock->busy));
}

static void begin(struct acquisition *acquisition, const struct request *request)
{
	*acquisition = (struct acquisition){
	    .request = request,
	    .progress.verbose = request->verbose && !request->as_flock,
	    .progress.live = !request->quiet && !request->verbose && !request->as_flock,
	    .wait = {
		.deadline = {.never = true},
		.try_once = request->nonblocking || request->wait == 0 || request->queue_max == 0,
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

struct acquired acquire(const struct request *request, struct lock *locks)
{
	bool nested = !request->as_flock && (getenv("SEMLOCK_LOCK") != NULL || getenv("SEMLOCK_HELD") != NULL);
	const struct lock *culprit = locks;
	struct acquisition acquisition;
	struct acquired refused;
	enum outcome outcome;

	begin(&acquisition, request);
	for (unsigned i = 0; nested && i < request->nlocks; i++)
		if (!may_wait(&acquisition, &locks[i], &refused))
			return refused;
	if (request->preempt != PREEMPT_NOT)
		outcome = preempt_take(request, locks, &acquisition.wait, &acquisition.error);
	else if (request->nlocks > 1)
		outcome = lockset_take(locks, request->nlocks, &acquisition.wait, &culprit, &acquisition.error);
	else
		outcome = lock_take(locks, &acquisition.wait, &acquisition.error);
	if (acquisition.progress.begun)
		progress_ends(&acquisition.progress);
	if (outcome == TAKEN)
		return taken(&acquisition);
	if (outcome == FAILED)
		return end_with(result_of_error(request, culprit, &acquisition.error));
	return not_taken(&acquisition, culprit);
}
