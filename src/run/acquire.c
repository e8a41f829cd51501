#include <config.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "run/result.h"
#include "report/status_fd.h"
#include "report/exitcode.h"
#include "run/messages.h"
#include "run/nesting.h"
#include "run/acquire.h"
#include "run/progress.h"
#include "run/preempt.h"
#include "owners/owner_text.h"
#include "lock/lockset.h"

const char *acquire_label(const struct request *request, const struct lock *lock)
{
	static char text[PATH_MAX + 32];

	if (request->as_flock || lock->name != NULL)
		return lock->name == NULL ? request->label : lock->name;
	lock_text(lock, text, sizeof text);
	return text;
}

static int failed(const struct request *request, const struct lock *lock, const struct error *error)
{
	int status = exit_status_of(error->kind);

	complain("%s: %s", acquire_label(request, lock), ending_words(request, error));
	status_fd_event("failed %d", status);
	return status;
}

static int busy(const struct request *request, const struct lock *lock, const struct wait_options *wait_options)
{
	messages_busy(request, lock, !wait_options->try_once);
	status_fd_event(wait_options->try_once ? "busy" : "timeout");
	return request->busy_status;
}

static int taken(const struct request *request, int64_t since)
{
	messages_taken(request, since);
	status_fd_event("acquired");
	return ACQUIRED;
}

/* Does the wait end, if nothing else ends it?  Then a lock that this command holds is busy, like one
 * that others hold. */
static bool ends(const struct request *request)
{
	return (request->nonblocking || request->wait >= 0) && request->preempt == PREEMPT_NOT;
}

/* To wait would be to wait for oneself, for ever.  BY: who holds it. */
static int refuse_nesting(const struct request *request, const struct lock *lock, enum nesting nesting,
    const char *by)
{
	bool can_nest = nesting != NESTING_LESS && lock->name != NULL && request->nlocks == 1 && request->command != NULL;
	struct error error;

	error_say(&error, ERROR_USAGE, "held %sby %s: %s%s",
	    nesting == NESTING_LESS ? "shared, in part, or as a slot, " : "", by,
	    nesting == NESTING_LESS ? "to have it in this mode, it would wait for itself"
	    : nesting == NESTING_QUEUES
		? "if another process waited between the two, it would wait for itself"
		: "it would wait for itself",
	    can_nest ? "; --nested runs the command under that lock" : "");
	return failed(request, lock, &error);
}

static int refuse_under(const struct request *request, const struct lock *lock, enum nesting nesting, pid_t pid)
{
	struct process holder;
	char command[128], by[224];

	process_read(pid, &holder);
	process_command(&holder, command, sizeof command, 40);
	snprintf(by, sizeof by, "process %ld (%s), under which this one runs", (long)pid, command);
	return refuse_nesting(request, lock, nesting, by);
}

/* Returns OBTAINED when there is nothing to object. */
static int check_nesting(const struct request *request, const struct lock *locks,
    struct wait_options *wait_options, bool *under_ancestor)
{
	enum nesting nesting;
	pid_t holder;

	for (unsigned i = 0; i < request->nlocks; i++) {
		nesting = nesting_look(&locks[i], &holder);
		if (nesting == NESTING_NONE)
			continue;
		/* A writer that queues between the two would wait for the outer, and the inner one for
		 * the writer. */
		if (nesting == NESTING_SHARES)
			wait_options->passes = true;
		else if (request->nested && nesting != NESTING_LESS)
			*under_ancestor = true;
		else if (!ends(request))
			return refuse_under(request, &locks[i], nesting, holder);
		else if (nesting != NESTING_QUEUES) { /* which may be had */
			wait_options->try_once = true;
			/* Do not ask the server, unless a slot may be free: the command has not
			 * inherited SEMLOCK_PASSWORD. */
			if ((locks[i].method->can & ON_SERVER) != 0 && locks[i].slots == 0)
				return busy(request, &locks[i], wait_options);
		}
	}
	return ACQUIRED;
}

/* What is told when a wait begins. */
struct waiting {
	struct progress progress;
	struct wait_options *wait_options;
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
		waiting->wait_options->passes = true;
	if (waiting->nesting > NESTING_SHARES)
		waiting->wait_options->deadline = deadline_after(0);
	else
		progress_waits(lock, &waiting->progress);
}

static void say_stopped(pid_t pid, const void *request)
{
	messages_stopped(request, pid);
	status_fd_event("stopped %ld", (long)pid);
}

/* Stop the holder first, or instead. */
static int preempt(const struct request *request, struct lock *lock, const struct wait_options *wait_options,
    int64_t since)
{
	struct preemption preemption = {
	    .signal = request->preempt_signal,
	    .kill_after = request->kill_after,
	    .wait_options = wait_options,
	    .tell = say_stopped,
	    .context = request,
	};
	struct error error = {0};
	enum outcome outcome = request->preempt == PREEMPT_TOGGLE ? toggle_take(lock, &preemption, &error)
							   : replace_take(lock, &preemption, &error);

	progress_end();
	if (outcome == TAKEN)
		return taken(request, since);
	if (outcome == BUSY)
		return preemption.done ? EXIT_SUCCESS : busy(request, lock, wait_options);
	return failed(request, lock, &error);
}

/* A descriptor that this process has inherited holds LOCK. */
static int held_already(const struct request *request, const struct lock *lock,
    const struct waiting *waiting, bool *under_ancestor)
{
	char by[64];

	if (request->nested && waiting->nesting != NESTING_LESS) {
		*under_ancestor = true;
		return ACQUIRED;
	}
	if (ends(request)) {
		waiting->wait_options->try_once = true;
		return busy(request, lock, waiting->wait_options);
	}
	snprintf(by, sizeof by, "descriptor %d, which this command has inherited", waiting->fd);
	return refuse_nesting(request, lock, waiting->nesting, by);
}

static int wait_for(const struct request *request, struct lock *locks, struct waiting *waiting,
    int64_t since, bool *under_ancestor)
{
	const struct wait_options *wait_options = waiting->wait_options;
	const struct lock *culprit = locks;
	struct error error = {0};
	enum outcome outcome = request->nlocks > 1
				   ? lockset_take(locks, request->nlocks, wait_options, &culprit, &error)
				   : lock_take(locks, wait_options, &error);

	progress_end();
	if (outcome == TAKEN)
		return taken(request, since);
	if (outcome == BUSY && waiting->nesting > NESTING_SHARES)
		return held_already(request, culprit, waiting, under_ancestor);
	if (outcome == BUSY && error.kind != ERROR_NONE && !request->quiet)
		complain("%s: %s", acquire_label(request, culprit), error.text); /* it will not end by itself */
	return outcome == BUSY ? busy(request, culprit, wait_options) : failed(request, culprit, &error);
}

int acquire(const struct request *request, struct lock *locks, bool *under_ancestor)
{
	struct waiting waiting = {
	    .may_nest = !request->as_flock && request->preempt == PREEMPT_NOT,
	    .progress.verbose = request->verbose && !request->as_flock,
	    .progress.live = !request->quiet && !request->verbose && !request->as_flock,
	};
	struct wait_options wait_options = {
	    .deadline = request->wait < 0 ? deadline_never() : deadline_after(request->wait),
	    .try_once = request->nonblocking || request->wait == 0,
	    .waits = begin_waiting,
	    .context = &waiting,
	};
	int64_t since = request->verbose ? clock_now() : 0; /* the first look at the clock has its price */
	int status = ACQUIRED;

	waiting.wait_options = &wait_options;
	waiting.progress.deadline = wait_options.deadline;
	if (!request->as_flock)
		status = check_nesting(request, locks, &wait_options, under_ancestor);
	if (status == ACQUIRED && !*under_ancestor)
		status = request->preempt != PREEMPT_NOT ? preempt(request, locks, &wait_options, since)
						 : wait_for(request, locks, &waiting, since, under_ancestor);
	if (*under_ancestor)
		status_fd_event("nested");
	return status;
}
