#include <config.h>

#include <stdlib.h>

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

	complain("%s: %s", obtain_label(opt, lock), why->text);
	event("failed %d", status);
	return status;
}

static int busy(const struct options *opt, const struct lock *lock, const struct patience *patience)
{
	messages_busy(opt, obtain_label(opt, lock), lock);
	event(patience->try_once ? "busy" : "timeout");
	return opt->busy_status;
}

static int taken(const struct options *opt, int64_t since)
{
	messages_taken(opt, since);
	event("acquired");
	return OBTAINED;
}

/* Who would wait for itself is told so at once. */
static int refuse_nesting(const struct options *opt, const struct lock *lock,
    pid_t pid, enum nesting nesting)
{
	struct process holder;
	char command[128];
	struct why why;

	process_read(pid, &holder);
	process_command(&holder, command, sizeof command, 40);
	if (nesting == NESTING_LESS)
		why_say(&why, TROUBLE_USAGE,
		    "held shared, in part, or as a slot, by process %ld (%s), under which this one "
		    "runs: to have it in this mode, it would wait for itself",
		    (long)pid, command);
	else if (nesting == NESTING_QUEUES)
		why_say(&why, TROUBLE_USAGE,
		    "held shared by process %ld (%s), under which this one runs: if somebody waited "
		    "between the two, it would wait for itself; --nested runs the command under "
		    "that lock",
		    (long)pid, command);
	else
		why_say(&why, TROUBLE_USAGE,
		    "held by process %ld (%s), under which this one runs: it would wait for itself; "
		    "--nested runs the command under that lock",
		    (long)pid, command);
	return failed(opt, lock, &why);
}

/* Returns OBTAINED when there is nothing to object. */
static int check_nesting(const struct options *opt, const struct lock *locks,
    struct patience *patience, bool *under_ancestor)
{
	enum nesting nesting;
	pid_t holder;

	for (unsigned i = 0; i < opt->nlocks; i++) {
		nesting = nesting_look(&locks[i], &holder);
		switch (nesting) {
		case NESTING_NONE:
			continue;
		case NESTING_SHARES:
			/* A writer that queues between the two would wait for the outer, and the
			 * inner one for the writer. */
			patience->passes = true;
			continue;
		case NESTING_LESS:
			return refuse_nesting(opt, &locks[i], holder, nesting);
		case NESTING_QUEUES:
		case NESTING_COVERS:
			if (!opt->nested)
				return refuse_nesting(opt, &locks[i], holder, nesting);
			*under_ancestor = true;
		}
	}
	return OBTAINED;
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

static int wait_for(const struct options *opt, struct lock *locks, const struct patience *patience,
    int64_t since)
{
	const struct lock *culprit = locks;
	struct why why = {0};
	enum outcome outcome = opt->nlocks > 1
				   ? several_take(locks, opt->nlocks, patience, &culprit, &why)
				   : lock_take(locks, patience, &why);

	progress_end();
	if (outcome == TAKEN)
		return taken(opt, since);
	if (outcome == BUSY && why.trouble != TROUBLE_NONE && !opt->quiet)
		complain("%s: %s", obtain_label(opt, culprit), why.text); /* it will not end by itself */
	return outcome == BUSY ? busy(opt, culprit, patience) : failed(opt, culprit, &why);
}

int obtain(const struct options *opt, struct lock *locks, bool *under_ancestor)
{
	struct progress progress = {
	    .verbose = opt->verbose && !opt->as_flock,
	    .live = !opt->quiet && !opt->verbose && !opt->as_flock,
	};
	struct patience patience = {
	    .deadline = opt->wait < 0 ? deadline_never() : deadline_after(opt->wait),
	    .try_once = opt->nonblocking || opt->wait == 0,
	    .waits = progress_waits,
	    .context = &progress,
	};
	int64_t since = opt->verbose ? clock_now() : 0; /* the first look at the clock has its price */
	int status;

	progress.deadline = patience.deadline;
	if (!opt->as_flock) {
		status = check_nesting(opt, locks, &patience, under_ancestor);
		if (status != OBTAINED)
			return status;
	}
	if (*under_ancestor) {
		event("nested");
		return OBTAINED;
	}
	if (opt->steer != STEER_NOT)
		return steer(opt, locks, &patience, since);
	return wait_for(opt, locks, &patience, since);
}
