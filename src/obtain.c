#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "ending.h"
#include "events.h"
#include "exitcode.h"
#include "messages.h"
#include "nesting.h"
#include "obtain.h"
#include "progress.h"
#include "replace.h"
#include "several.h"

const char *obtain_label(const struct options *opt, const struct lock *lock)
{
	return lock->name == NULL ? opt->label : lock->name;
}

static int failed(const struct options *opt, const struct lock *lock, const struct why *why)
{
	int status = exit_status_of(why->trouble);

	complain("%s: %s", obtain_label(opt, lock), ending_words(opt, why));
	event("failed %d", status);
	return status;
}

static int busy(const struct options *opt, const struct lock *lock, const struct patience *patience)
{
	messages_busy(opt, obtain_label(opt, lock), lock, !patience->try_once);
	event(patience->try_once ? "busy" : "timeout");
	return opt->busy_status;
}

static int taken(const struct options *opt, int64_t since)
{
	messages_taken(opt, since);
	event("acquired");
	return OBTAINED;
}

/* Does the wait end, if nothing else ends it?  Then a lock that this command holds is busy, like one
 * that others hold. */
static bool ends(const struct options *opt)
{
	return (opt->nonblocking || opt->wait >= 0) && opt->steer == STEER_NOT;
}

/* To wait would be to wait for oneself, for ever.  BY: who holds it. */
static int refuse_nesting(const struct options *opt, const struct lock *lock, enum nesting nesting,
    const char *by)
{
	bool can_nest = nesting != NESTING_LESS && lock->name != NULL && opt->nlocks == 1 && opt->command != NULL;
	struct why why;

	why_say(&why, TROUBLE_USAGE, "held %sby %s: %s%s",
	    nesting == NESTING_LESS ? "shared, in part, or as a slot, " : "", by,
	    nesting == NESTING_LESS ? "to have it in this mode, it would wait for itself"
	    : nesting == NESTING_QUEUES
		? "if another process waited between the two, it would wait for itself"
		: "it would wait for itself",
	    can_nest ? "; --nested runs the command under that lock" : "");
	return failed(opt, lock, &why);
}

static int refuse_under(const struct options *opt, const struct lock *lock, enum nesting nesting, pid_t pid)
{
	struct process holder;
	char command[128], by[224];

	process_read(pid, &holder);
	process_command(&holder, command, sizeof command, 40);
	snprintf(by, sizeof by, "process %ld (%s), under which this one runs", (long)pid, command);
	return refuse_nesting(opt, lock, nesting, by);
}

/* Returns OBTAINED when there is nothing to object. */
static int check_nesting(const struct options *opt, const struct lock *locks,
    struct patience *patience, bool *under_ancestor)
{
	enum nesting nesting;
	pid_t holder;

	for (unsigned i = 0; i < opt->nlocks; i++) {
		nesting = nesting_look(&locks[i], &holder);
		if (nesting == NESTING_NONE)
			continue;
		/* A writer that queues between the two would wait for the outer, and the inner one for
		 * the writer. */
		if (nesting == NESTING_SHARES)
			patience->passes = true;
		else if (opt->nested && nesting != NESTING_LESS)
			*under_ancestor = true;
		else if (!ends(opt))
			return refuse_under(opt, &locks[i], nesting, holder);
		else if (nesting != NESTING_QUEUES) /* which may be had */
			patience->try_once = true;
	}
	return OBTAINED;
}

/* What is told when a wait begins. */
struct waiting {
	struct progress progress;
	struct patience *patience;
	bool may_nest;        /* look for it; not by the name flock, nor with --replace */
	enum nesting nesting; /* a descriptor that this process has inherited holds the lock */
	int fd;               /* which */
};

static void begin_waiting(const struct lock *lock, void *context)
{
	struct waiting *waiting = context;

	if (waiting->may_nest)
		waiting->nesting = nesting_inherited(lock, &waiting->fd);
	if (waiting->nesting == NESTING_SHARES)
		waiting->patience->passes = true;
	if (waiting->nesting > NESTING_SHARES)
		waiting->patience->deadline = deadline_after(0);
	else
		progress_waits(lock, &waiting->progress);
}

static void say_stopped(pid_t pid, const void *opt)
{
	messages_stopped(opt, pid);
	event("stopped %ld", (long)pid);
}

/* Stop the holder first, or instead. */
static int steer(const struct options *opt, struct lock *lock, const struct patience *patience,
    int64_t since)
{
	struct steering steering = {
	    .signal = opt->steer_signal,
	    .kill_after = opt->kill_after,
	    .patience = patience,
	    .tell = say_stopped,
	    .context = opt,
	};
	struct why why = {0};
	enum outcome outcome = opt->steer == STEER_TOGGLE ? toggle_take(lock, &steering, &why)
							   : replace_take(lock, &steering, &why);

	progress_end();
	if (outcome == TAKEN)
		return taken(opt, since);
	if (outcome == BUSY)
		return steering.done ? EXIT_SUCCESS : busy(opt, lock, patience);
	return failed(opt, lock, &why);
}

/* A descriptor that this process has inherited holds LOCK. */
static int held_already(const struct options *opt, const struct lock *lock,
    const struct waiting *waiting, bool *under_ancestor)
{
	char by[64];

	if (opt->nested && waiting->nesting != NESTING_LESS) {
		*under_ancestor = true;
		return OBTAINED;
	}
	if (ends(opt)) {
		waiting->patience->try_once = true;
		return busy(opt, lock, waiting->patience);
	}
	snprintf(by, sizeof by, "descriptor %d, which this command has inherited", waiting->fd);
	return refuse_nesting(opt, lock, waiting->nesting, by);
}

static int wait_for(const struct options *opt, struct lock *locks, struct waiting *waiting,
    int64_t since, bool *under_ancestor)
{
	const struct patience *patience = waiting->patience;
	const struct lock *culprit = locks;
	struct why why = {0};
	enum outcome outcome = opt->nlocks > 1
				   ? several_take(locks, opt->nlocks, patience, &culprit, &why)
				   : lock_take(locks, patience, &why);

	progress_end();
	if (outcome == TAKEN)
		return taken(opt, since);
	if (outcome == BUSY && waiting->nesting > NESTING_SHARES)
		return held_already(opt, culprit, waiting, under_ancestor);
	if (outcome == BUSY && why.trouble != TROUBLE_NONE && !opt->quiet)
		complain("%s: %s", obtain_label(opt, culprit), why.text); /* it will not end by itself */
	return outcome == BUSY ? busy(opt, culprit, patience) : failed(opt, culprit, &why);
}

int obtain(const struct options *opt, struct lock *locks, bool *under_ancestor)
{
	struct waiting waiting = {
	    .may_nest = !opt->as_flock && opt->steer == STEER_NOT,
	    .progress.verbose = opt->verbose && !opt->as_flock,
	    .progress.live = !opt->quiet && !opt->verbose && !opt->as_flock,
	};
	struct patience patience = {
	    .deadline = opt->wait < 0 ? deadline_never() : deadline_after(opt->wait),
	    .try_once = opt->nonblocking || opt->wait == 0,
	    .waits = begin_waiting,
	    .context = &waiting,
	};
	int64_t since = opt->verbose ? clock_now() : 0; /* the first look at the clock has its price */
	int status = OBTAINED;

	waiting.patience = &patience;
	waiting.progress.deadline = patience.deadline;
	if (!opt->as_flock)
		status = check_nesting(opt, locks, &patience, under_ancestor);
	if (status == OBTAINED && !*under_ancestor)
		status = opt->steer != STEER_NOT ? steer(opt, locks, &patience, since)
						 : wait_for(opt, locks, &waiting, since, under_ancestor);
	if (*under_ancestor)
		event("nested");
	return status;
}
