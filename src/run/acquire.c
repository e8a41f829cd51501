/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "report/status_fd.h"
#include "owners/owners.h"
#include "run/acquire.h"
#include "hold/keeper_client.h"
#include "run/observer.h"
#include "preempt/preempt.h"
#include "lock/lockset.h"
#include "lock/taking.h"
#include "methods/kernel/lockfile.h"
#include "sys/process.h"
#include "sys/signals.h"

/* A lock that names no process and has shown no sign of life for this long may be abandoned. */
#define LEFT_BEHIND (60 * SECOND)

/* What is known while the locks are being taken. */
struct acquisition {
	struct run *run;
	const struct request *request;
	struct wait_options wait;
	struct taking taking;
	struct show show;
	struct preemption *preemption; /* NULL: neither --replace nor --toggle */
	enum nesting nesting;          /* what this process has inherited */
	int fd;                        /* the inherited descriptor that holds the lock */
	struct own_hold own;           /* the lock's background hold for us or an ancestor */
	bool said;                     /* a wait has begun: no more reports of an unusable queue */
	struct error error;
};

static enum run_locks busy(const struct acquisition *acquisition, const struct lock *lock,
    enum busy_reason reason)
{
	outcome_busy(&acquisition->run->outcome, acquisition->request, lock, reason);
	return LOCKS_NONE;
}

static enum run_locks failed(const struct acquisition *acquisition, const struct lock *lock,
    const struct error *error)
{
	outcome_failed(&acquisition->run->outcome, acquisition->request, lock, error);
	return LOCKS_NONE;
}

/* On FUSE, a lock may exclude only the processes that use this mount. */
static void say_hidden(const struct acquisition *acquisition)
{
	const struct lock *lock;
	char type[64];

	for (unsigned i = 0; i < acquisition->request->nlocks; i++) {
		lock = &acquisition->run->locks[i];
		if (lock->spec->method->family == OF_KERNEL &&
		    lockfile_may_be_hidden(lock, type, sizeof type))
			complain("%s: a lock on %s may be seen by this mount alone: a process that "
				 "reaches the file another way may not be excluded; -m excl is "
				 "seen everywhere",
			    messages_label(acquisition->request, lock), type);
	}
}

static enum run_locks taken(const struct acquisition *acquisition)
{
	const struct request *request = acquisition->request;
	int64_t waited = hold_time_waited(&acquisition->run->time);
	long long seconds = waited / SECOND, us = waited % SECOND / 1000;

	if (request->verbose && request->as_flock) /* in flock(1)'s words, and on its stream */
		tell(STDOUT_FILENO, "getting lock took %lld.%06lld seconds", seconds, us);
	else if (request->verbose) {
		complain("%s: taken after %lld.%06lld s", request->label, seconds, us);
		say_hidden(acquisition);
	}
	hold_time_holds(&acquisition->run->time);
	status_fd_event("acquired waited=" STATUS_FD_SECONDS, STATUS_FD_TIME(waited));
	return LOCKS_TAKEN;
}

/* ---- locks that this process has inherited ---- */

/* Does the wait end by itself?  If so, an inherited lock is reported as busy, like any other. */
static bool wait_ends(const struct request *request)
{
	return request->nonblocking || (request->wait >= 0 && !request->keep_place) ||
	       request->queue_max == 0;
}

/* Does an inherited lock matter?  Not when invoked as flock, nor with --replace or --toggle. */
static bool may_nest(const struct request *request)
{
	return !request->as_flock && request->preempt == PREEMPT_NOT;
}

/* Refuse the wait: only a later semlock --release ends that hold, and its owner cannot run one
 * while it waits for this call. */
static enum run_locks held_for_us(const struct acquisition *acquisition, const struct lock *lock)
{
	const struct own_hold *own = &acquisition->own;
	struct error error;

	error_plain(&error, ERROR_USAGE,
	    "held for your own process %ld (%s), which cannot run semlock --release=%s while "
	    "this call waits; if another process will run it, use -w",
	    (long)own->owner, own->id, own->id);
	return failed(acquisition, lock, &error);
}

static bool is_on_server(const struct lock *lock)
{
	return lock->spec->method->family == ON_SERVER;
}

/* This process has inherited LOCK, so it would wait for itself: refuse the wait, or, if the wait
 * ends by itself, report LOCK as busy. */
static enum run_locks held_by_us(const struct acquisition *acquisition, const struct lock *lock)
{
	const struct request *request = acquisition->request;
	const bool is_less = acquisition->nesting == NESTING_LESS;
	const bool can_nest = !is_less && lock->spec->name != NULL && request->nlocks == 1 &&
	                      request->command != NULL;
	const char *less = is_less ? "shared, in part, or as a slot, " : "";
	const char *cure = can_nest ? "; --nested runs the command under that lock" : "";
	const char *why = "waiting for it would never end";
	struct error error;

	if (wait_ends(request))
		return busy(acquisition, lock, BUSY_INHERITED);
	if (is_less)
		why = "waiting for more than that would never end";
	else if (acquisition->nesting == NESTING_AGAIN)
		why = "waiting for it would never end if another process queued before this one";
	if (is_on_server(lock))
		error_plain(&error, ERROR_USAGE, "held %sby the semlock above this command: %s%s",
		    less, why, cure);
	else
		error_plain(&error, ERROR_USAGE,
		    "held %sby descriptor %d, which this command has inherited: %s%s", less,
		    acquisition->fd, why, cure);
	return failed(acquisition, lock, &error);
}

/* May semlock ask the server for LOCK?  Not if this process has inherited LOCK, because the
 * environment of a command under such a lock lacks SEMLOCK_PASSWORD.  But if the wait ends by
 * itself, another slot may be free, or a second shared lock possible: then ask all the same. */
static bool may_ask(struct acquisition *acquisition, const struct lock *lock)
{
	if (acquisition->nesting == NESTING_NONE || !wait_ends(acquisition->request))
		return acquisition->nesting == NESTING_NONE;
	if (acquisition->nesting != NESTING_AGAIN)
		acquisition->wait.try_once = true;
	return acquisition->nesting == NESTING_AGAIN || lock->spec->slots > 0;
}

/* With --nested, and for a lock on a server, look at what is inherited before asking for LOCK.
 * Returns false with *INSTEAD filled if LOCK must not be asked for. */
static bool look_before(struct acquisition *acquisition, const struct lock *lock,
    enum run_locks *instead)
{
	acquisition->nesting = nesting_inherited(lock, &acquisition->fd);
	if (acquisition->request->nested &&
	    (acquisition->nesting == NESTING_AGAIN || acquisition->nesting == NESTING_COVERS)) {
		hold_time_holds(&acquisition->run->time);
		status_fd_event("nested");
		*instead = LOCKS_INHERITED;
	} else if (is_on_server(lock) && !may_ask(acquisition, lock))
		*instead = held_by_us(acquisition, lock);
	else
		return true;
	return false;
}

/* ---- the wait ---- */

static void end_by_signal(int signo)
{
	observer_end();
	_exit(128 + signo);
}

/* The kernel gives process 1 of a container only the signals that it has a handler for: without
 * one, TERM would not end its wait. */
static void heed_signals(void)
{
	for (size_t i = 0; getpid() == 1 && i < ENDING_SIGNALS; i++)
		if (!signals_ignored(ending_signals[i]))
			signal(ending_signals[i], end_by_signal);
}

/* Would this wait be silent, and last until LOCK is released? */
static bool may_wait_unseen(const struct acquisition *acquisition, const struct lock *lock)
{
	return lock->spec->method->family == OF_FILES && lock->spec->stale == 0 &&
	       acquisition->wait.deadline.never && !acquisition->request->quiet &&
	       !observer_shows(&acquisition->show);
}

/* Warn of LOCK if it is a file that names no process, such as an empty one made by touch(1).  A
 * program that makes such locks removes them.  If nobody removes this one, a cron(8) job would wait
 * forever in silence. */
static void say_left_behind(const struct acquisition *acquisition, const struct lock *lock)
{
	struct search_terms terms = SEARCH_BRIEFLY;
	struct owners found;
	const struct owner *holder;
	struct error error;
	char since[32];

	if (!record_names_nobody(lock, LEFT_BEHIND))
		return;
	if (owners_look(&found, lock, &terms, &error) != 0)
		return;
	holder = found.holders > 0 ? &found.list[0] : NULL;
	if (holder != NULL && holder->doubt == DOUBT_NOBODY && holder->touched > 0) {
		moment_text(holder->touched, since, sizeof since);
		complain("%s: waiting: the lock names no process, and its last sign of life was "
			 "%s; if nobody holds it, remove it, or use --stale",
		    messages_label(acquisition->request, lock), since);
	}
	owners_forget(&found);
	search_terms_forget(&terms);
}

static bool needs_queue(const struct wait_options *wait)
{
	return wait->places > 0 || wait->supersede;
}

/* LOCK is busy, and the wait for it begins: note the place for --log, and show the wait as the
 * options ask. */
static void show_wait(struct acquisition *acquisition, const struct lock *lock)
{
	const struct request *request = acquisition->request;
	struct run *run = acquisition->run;

	if (lock->place.unordered && needs_queue(&acquisition->wait) && !acquisition->said &&
	    !request->quiet)
		complain(
		    "%s: its queue cannot be used, so %s, and the wait is in the kernel's order",
		    messages_label(request, lock),
		    acquisition->wait.supersede ? "--supersede ends no wait"
						: "--queue-max is not kept");
	acquisition->said = true;
	if (request->log != NULL)
		acquisition->run->log.place = taking_place(&acquisition->taking);
	if (may_wait_unseen(acquisition, lock))
		say_left_behind(acquisition, lock);
	if (request->keep_place)
		caller_leave(&run->detachment.caller, run->locks, request->nlocks);
	if (request->detach)
		hold_waits((unsigned)(lock - run->locks));
	else
		observer_start(&acquisition->show, lock);
}

/* The wait for LOCK begins, unless an inherited lock or our own hold would make it last forever. */
static enum when_busy wait_or_not(struct acquisition *acquisition, const struct lock *lock)
{
	heed_signals();
	if (may_nest(acquisition->request) && !is_on_server(lock))
		acquisition->nesting = nesting_inherited(lock, &acquisition->fd);
	if (acquisition->nesting >= NESTING_COVERS)
		return GIVE_UP;
	if (acquisition->nesting == NESTING_NONE && may_nest(acquisition->request) &&
	    !wait_ends(acquisition->request) && !acquisition->request->keep_place &&
	    own_hold_find(lock, &acquisition->own))
		return GIVE_UP;
	show_wait(acquisition, lock);
	/* A writer that queued between the inherited lock and this one would wait for the inherited
	 * lock, and this process would wait for the writer: so go past the queue. */
	return acquisition->nesting == NESTING_NONE ? WAIT : WAIT_PAST_QUEUE;
}

/* What to wait for, and how long. */
static struct wait_options wait_of(const struct request *request)
{
	struct wait_options wait = {
	    .deadline = {.never = true},
	    .try_once = request->nonblocking || request->queue_max == 0 ||
	                (request->wait == 0 && !request->keep_place),
	    .first = request->first,
	    .supersede = request->supersede,
	    .places = request->queue_max > 0 ? (unsigned)request->queue_max : 0,
	    .preempt = request->preempt,
	};

	if (request->wait >= 0 && !request->keep_place) /* else only the front enforces -w */
		wait.deadline = deadline_after(request->wait);
	return wait;
}

static void acquisition_begin(struct acquisition *acquisition, struct run *run)
{
	*acquisition = (struct acquisition){
	    .run = run,
	    .request = run->request,
	    .wait = wait_of(run->request),
	    .show = show_of(run->request),
	};
	acquisition->show.deadline = acquisition->wait.deadline;
}

/* For --replace and --toggle.  Returns 0, or -1 with ACQUISITION->error filled. */
static int begin_preemption(struct acquisition *acquisition)
{
	const struct request *request = acquisition->request;
	struct wait_options *wait = &acquisition->wait;

	acquisition->preemption =
	    preempt_begin(request, &wait->deadline, wait->try_once, &acquisition->error);
	/* With --older, a holder that is old enough is stopped even with -n.  --toggle waits for
	 * the holder that it stops, never for the lock. */
	wait->try_once =
	    request->preempt == PREEMPT_TOGGLE || (wait->try_once && request->older == 0);
	return acquisition->preemption == NULL ? -1 : 0;
}

/* ---- taking the locks ---- */

static enum outcome acquisition_take(struct acquisition *acquisition)
{
	struct taking *taking = &acquisition->taking;
	struct error *error = &acquisition->error;
	enum outcome stopped;

	taking_begin(taking, acquisition->run->locks, acquisition->request->nlocks,
	    &acquisition->wait);
	for (;;) {
		switch (taking_step(taking, error)) {
		case STEP_TAKEN:
			return TAKEN;
		case STEP_BUSY:
			return BUSY;
		case STEP_FAILED:
			return FAILED;
		case STEP_WAITS:
			taking->when_busy = wait_or_not(acquisition, taking->lock);
			break;
		case STEP_HELD:
			stopped = preempt_stop(acquisition->preemption, taking->lock, &taking->nap,
			    error);
			if (stopped == AGAIN)
				break;
			taking_give_up(taking);
			return stopped;
		case STEP_NEEDS_CHILD:
			if (run_start_child(acquisition->run, error) == 0)
				break;
			taking_give_up(taking);
			return FAILED;
		}
	}
}

/* With -n there was no wait, so wait_or_not() has not looked at what this process has inherited.
 * If that is a lock that does not cover LOCK, LOCK may be taken past the queue. */
static bool may_skip_queue(struct acquisition *acquisition, const struct lock *lock)
{
	if (!lock->place.queued || lock->busy != BUSY_NOW ||
	    lock->spec->method->family != OF_KERNEL || !may_nest(acquisition->request) ||
	    acquisition->wait.past_queue)
		return false;
	acquisition->nesting = nesting_inherited(lock, &acquisition->fd);
	acquisition->wait.past_queue =
	    acquisition->nesting != NESTING_NONE && acquisition->nesting < NESTING_COVERS;
	return acquisition->wait.past_queue;
}

enum run_locks acquire(struct run *run)
{
	const struct request *request = run->request;
	struct acquisition acquisition;
	enum run_locks instead;
	const struct lock *culprit;
	enum outcome outcome;

	acquisition_begin(&acquisition, run);
	if (request->preempt != PREEMPT_NOT && begin_preemption(&acquisition) != 0)
		return failed(&acquisition, run->locks, &acquisition.error);
	if ((request->nested || is_on_server(run->locks)) && may_nest(request) &&
	    !look_before(&acquisition, run->locks, &instead))
		return instead;
	do
		outcome = acquisition_take(&acquisition);
	while (outcome == BUSY && may_skip_queue(&acquisition, acquisition.taking.lock));
	observer_end();
	if (acquisition.preemption != NULL)
		preempt_end(acquisition.preemption);

	culprit = acquisition.taking.lock;
	if (outcome == TAKEN)
		return taken(&acquisition);
	if (outcome == FAILED)
		return failed(&acquisition, culprit, &acquisition.error);
	if (acquisition.own.owner != 0)
		return held_for_us(&acquisition, culprit);
	if (culprit->busy == BUSY_INHERITED)
		return held_by_us(&acquisition, culprit);
	/* say why waiting longer would not help */
	if (acquisition.error.kind != ERROR_NONE && !request->quiet)
		complain("%s: %s", messages_label(request, culprit), acquisition.error.text);
	return busy(&acquisition, culprit, culprit->busy);
}
