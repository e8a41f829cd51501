/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "lock/attempt.h"
#include "preempt/preempt.h"
#include "preempt/targets.h"
#include "report/status_fd.h"
#include "sys/crash_points.h"
#include "sys/signals.h"

/* A process that may be signalled, known by a pidfd: a descriptor of that very process.  Once it
 * has ended, a signal reaches no process, even if its PID is another process's by then. */
struct target {
	pid_t pid;
	int pidfd;
	bool signalled;
	bool proven;          /* a part of the job: see targets_is_of_job() */
	struct deadline kill; /* once SIGNALLED: the time of SIGKILL */
};

struct preempt_state {
	const struct request *request;
	struct lock *lock;
	const struct wait_options *wait;
	bool stopped; /* a process has been signalled */
	struct target *targets;
	size_t count; /* of them */
	bool toggles; /* --toggle */
	/* with that: the holders, as found by the search that signalled them */
	struct owners first;
	bool said_young; /* --verbose has named a holder that is left alone */
	/* this search, and the one before it, left a doubt about a holder */
	bool doubts, doubted;
	/* what the last search found of a lock that changes hands; "": it does not */
	char change[200];
	bool yielding; /* the last search found a waiter that may give the lock back ... */
	/* ... and so did each since then, ns on clock_now()'s clock; 0: it did not */
	int64_t yielding_since;
	/* since then the lock is busy and no target lives, ns; 0: one does */
	int64_t nobody_since;
	/* the last search found a holder that is stopped only in so many ns (--older); 0: none */
	int64_t young;
	int searches; /* searches since NOBODY_SINCE */
	long pause;   /* ms until the next search */
	struct error *error;
};

static int cannot_signal(struct error *error, pid_t pid)
{
	if (errno == EPERM)
		return error_plain(error, ERROR_PERMISSION,
		    "cannot stop the holder: process %ld is another user's; run semlock as that "
		    "user, or as root",
		    (long)pid);
	return error_set(error, ERROR_UNAVAILABLE, "cannot stop the holder, process %ld",
	    (long)pid);
}

/* A zombie still takes signals, and has released its locks. */
static bool target_lives(const struct target *target)
{
	struct pollfd end = {target->pidfd, POLLIN, 0};

	return poll(&end, 1, 0) == 0;
}

/* The living target PID, or NULL. */
static struct target *find_target(const struct preempt_state *state, pid_t pid)
{
	for (size_t i = 0; i < state->count; i++)
		if (state->targets[i].pid == pid && target_lives(&state->targets[i]))
			return &state->targets[i];
	return NULL;
}

/* Is a target alive that has been signalled? */
static bool is_obeying(const struct preempt_state *state)
{
	for (size_t i = 0; i < state->count; i++)
		if (state->targets[i].signalled && target_lives(&state->targets[i]))
			return true;
	return false;
}

/* Returns 0, also when there is no process PID; or -1 with ERROR filled. */
static int add_target(struct preempt_state *state, pid_t pid)
{
	struct target *list;
	int pidfd;

	if (find_target(state, pid) != NULL)
		return 0;
	pidfd = pidfd_of(pid);
	if (pidfd < 0)
		return errno == ESRCH ? 0 : cannot_signal(state->error, pid);
	list = realloc(state->targets, (state->count + 1) * sizeof *list);
	if (list == NULL) {
		close(pidfd);
		errno = ENOMEM;
		return cannot_signal(state->error, pid);
	}
	list[state->count++] = (struct target){.pid = pid, .pidfd = pidfd};
	state->targets = list;
	return 0;
}

/* Returns 0, also when TARGET has ended; -1 with errno set. */
static int send_signal(const struct target *target, int signo)
{
	return pidfd_send(target->pidfd, signo) == 0 || errno == ESRCH ? 0 : -1;
}

/* Once a holder has been signalled, the wait has no limit: that holder must not have been ended in
 * vain. */
static bool too_late(const struct preempt_state *state)
{
	/* else a holder that is old enough is stopped */
	bool try_once = state->wait->try_once && state->request->older == 0;

	return !state->stopped && (try_once || deadline_left(&state->wait->deadline) == 0);
}

/* Does PID hold the lock now; or SUPERVISOR, a flock -o whose command PID is? */
static bool proven_holder(const struct preempt_state *state, pid_t pid, pid_t supervisor)
{
	struct procfs_stat stat;

	return owners_verify(state->lock, pid) ||
	       (supervisor > 0 && process_stat(pid, &stat) && stat.parent == supervisor &&
		   owners_verify(state->lock, supervisor));
}

/* Prove that PID holds the lock, then signal it.  The target's pidfd is older than the proof: if
 * PID has ended since, the signal reaches no process. */
static int signal_holder(struct preempt_state *state, pid_t pid, pid_t supervisor, int signo)
{
	struct target *target = find_target(state, pid);

	if (target == NULL || too_late(state) || !proven_holder(state, pid, supervisor))
		return 0;
	CRASH_POINT("replace.proven");
	if (send_signal(target, signo) != 0)
		return cannot_signal(state->error, pid);
	state->stopped = true;
	if (target->signalled)
		return 0;
	target->signalled = true;
	target->kill = state->request->kill_after > 0 ? deadline_after(state->request->kill_after)
	                                              : deadline_never();
	if (state->request->verbose && !state->request->as_flock)
		complain("%s: stopped process %ld", state->request->label, (long)pid);
	status_fd_event("stopped %ld", (long)pid);
	return 0;
}

/* A program that holds the lock by semlock --hold would go on without it. */
static int refuse_placeholder(struct preempt_state *state, const struct owner *holder)
{
	pid_t pid = owner_caller_of_hold(holder);
	struct process caller;
	char command[80];

	if (pid == 0)
		return 0;
	if (pid == 1 || !process_read(pid, &caller))
		return error_plain(state->error, ERROR_UNAVAILABLE,
		    "cannot stop the holder: a program has it by semlock --hold, and would run on "
		    "without the lock");
	process_command(&caller, command, sizeof command, 40);
	return error_plain(state->error, ERROR_UNAVAILABLE,
	    "cannot stop the holder: process %ld (%s) has it by semlock --hold, and would run on "
	    "without the lock: end that "
	    "process",
	    (long)pid, command);
}

static int refuse_own_caller(struct preempt_state *state, const struct owner *holder)
{
	pid_t pid;

	for (size_t i = 0; i < holder->nmembers; i++) {
		pid = holder->members[i].pid;
		if (pid == getpid() || process_descends(getpid(), pid, 0, 0))
			return error_plain(state->error, ERROR_USAGE,
			    "cannot stop the holder: process %ld is an ancestor of this command, "
			    "which would end "
			    "with it; run the command outside of the lock",
			    (long)pid);
	}
	return 0;
}

/* A stopped process does not act on its signal: send SIGCONT, which semlock passes on to a stopped
 * command. */
static void continue_stopped(const struct target *target, const struct owner *holder)
{
	struct procfs_stat stat;
	bool stopped = false;

	for (size_t i = 0; i < holder->nmembers; i++)
		stopped =
		    stopped || (process_stat(holder->members[i].pid, &stat) && stat.state == 'T');
	if (stopped || (process_stat(target->pid, &stat) && stat.state == 'T'))
		send_signal(target, SIGCONT);
}

/* A holder that only its record names, or its open descriptor, is not signalled.  A doubt counts
 * when two searches in a row find it and no signalled target lives: a release during the search
 * causes one, and /proc/locks, which changes while it is read, may list a lock twice, the second
 * time without its process.  Returns 1 to go on, 0 to search again, -1 with ERROR filled. */
static int check_doubt(struct preempt_state *state, const struct owner *holder, pid_t pid)
{
	bool sure = state->doubted && !is_obeying(state);
	const struct target *known = find_target(state, pid);
	const char *missing =
	    known != NULL && known->proven ? NULL : targets_unproven(holder, pid, state->lock);
	bool doubtful = holder->doubt != DOUBT_NONE || holder->process.pid == 0 || missing != NULL;
	struct process process;
	char doubt[200], command[80];

	state->doubts = state->doubts || doubtful;
	if (doubtful && !sure)
		return 0;
	doubt_text(holder, doubt, sizeof doubt);
	if (doubt[0] != '\0')
		return error_plain(state->error, ERROR_UNAVAILABLE, "cannot stop the holder: %s",
		    doubt);
	if (holder->process.pid == 0)
		return error_plain(state->error, ERROR_PERMISSION,
		    "cannot stop the holder: permission to see its process is missing; run semlock "
		    "as its user, or as root");
	if (missing != NULL && process_read(pid, &process)) {
		process_command(&process, command, sizeof command, 40);
		return error_plain(state->error, ERROR_UNAVAILABLE,
		    "cannot stop the holder: process %ld (%s) %s", (long)pid, command, missing);
	}
	return missing == NULL;
}

/* All processes through which the lock is held; also a semlock that only the record names, to wait
 * for its end. */
static int add_targets(struct preempt_state *state, const struct owner *holder)
{
	struct target *target;

	for (size_t i = 0; i < holder->nmembers; i++) {
		if (add_target(state, holder->members[i].pid) != 0)
			return -1;
		target = find_target(state, holder->members[i].pid);
		if (target != NULL && !target->proven)
			target->proven = targets_is_of_job(holder, target->pid);
	}
	if (holder->kind == 0 && holder->supervisor != 0)
		add_target(state, holder->supervisor);
	return holder->supervisor != 0 && targets_of_flock(holder)
	           ? add_target(state, holder->process.pid)
	           : 0;
}

static int stop_holder(struct preempt_state *state, const struct owner *holder)
{
	int signo = state->request->preempt_signal;
	pid_t pid = targets_choose(holder, signo);
	struct target *target;
	int sure = check_doubt(state, holder, pid);

	if (sure <= 0)
		return sure;
	if (refuse_placeholder(state, holder) != 0 || refuse_own_caller(state, holder) != 0 ||
	    add_targets(state, holder) != 0)
		return -1;
	CRASH_POINT("replace.aimed");
	target = find_target(state, pid);
	if (target != NULL && !target->signalled &&
	    signal_holder(state, pid, holder->supervisor, signo) != 0)
		return -1;
	if (target == NULL || !target->signalled)
		return 0;
	continue_stopped(target, holder);
	if (deadline_left(&target->kill) > 0)
		return 0;
	return signal_holder(state, targets_choose(holder, SIGKILL), holder->supervisor, SIGKILL);
}

/* --toggle ends the holders of its first search and the processes that they leave behind, not the
 * next holder. */
static bool is_concerned(const struct preempt_state *state, const struct owner *holder)
{
	bool concerned = state->first.holders == 0;

	for (size_t i = 0; i < holder->nmembers; i++)
		concerned = concerned || find_target(state, holder->members[i].pid) != NULL;
	for (size_t i = 0; i < state->first.holders; i++)
		concerned =
		    concerned || (holder->taker > 0 && holder->taker == state->first.list[i].taker);
	return concerned;
}

/* A lock file that is not filled yet, or a dead holder's that another process is taking over. */
static bool changes_hands(const struct owner *holder)
{
	return (holder->verdict == ALIVE && holder->doubt == DOUBT_NOBODY) ||
	       holder->doubt == DOUBT_FLOCK;
}

/* May HOLDER give the lock back?  After a second it may not: that is a waiter stopped at this
 * point, and a holder. */
static bool may_yield(struct preempt_state *state, const struct owners *found,
    const struct owner *holder)
{
	if (!targets_may_yield(found, holder, state->lock))
		return false;
	state->yielding = true;
	state->pause = 1;
	state->nobody_since = state->searches = 0;
	return state->yielding_since == 0 || clock_now() - state->yielding_since < SECOND;
}

/* Leave HOLDER alone until it ends, or is old enough; a process that lives on may release the lock.
 * An unknown age is no reason: the proofs decide.  Returns 1; 0: it is old enough; -1 with ERROR
 * filled. */
static int leave_young(struct preempt_state *state, const struct owner *holder)
{
	int64_t age = clock_realtime() - holder->since,
		left = state->request->older - (age < 0 ? 0 : age);
	char since[32];

	if (holder->since == 0 || left <= 0)
		return 0;
	moment_text(holder->since, since, sizeof since);
	if (state->young == 0 && state->request->verbose && !state->said_young)
		complain("%s: process %ld is left alone until it %s for %lld s (since %s)",
		    state->request->label, (long)holder->process.pid,
		    holder->since_exact ? "has held the lock" : "has run",
		    (long long)(state->request->older / SECOND), since);
	state->said_young = true;
	state->young = left;
	state->pause = left < SECOND ? (long)(left / MILLISECOND) + 1 : 1000;
	state->nobody_since = state->searches = 0;
	return add_targets(state, holder) == 0 ? 1 : -1;
}

/* Returns the number of holders to wait for, or -1 with ERROR filled. */
static int stop_holders(struct preempt_state *state, const struct owners *found)
{
	const struct owner *holder;
	int count = 0, young;

	if (state->young > 0)
		state->pause = 1;
	state->yielding = false;
	state->young = 0;
	state->doubted = state->doubts;
	state->doubts = false;
	state->change[0] = '\0';
	for (size_t i = 0; i < found->holders; i++) {
		holder = &found->list[i];
		if (!owner_conflicts(holder, state->lock))
			continue;
		if (changes_hands(holder))
			doubt_text(holder, state->change, sizeof state->change);
		if (holder->verdict == DEAD || changes_hands(holder) ||
		    !is_concerned(state, holder))
			continue;
		count++;
		if (may_yield(state, found, holder))
			continue;
		young = leave_young(state, holder);
		if (young < 0 || (young == 0 && stop_holder(state, holder) != 0))
			return -1;
	}
	if (!state->yielding || state->yielding_since == 0)
		state->yielding_since = state->yielding ? clock_now() : 0;
	return count;
}

/* Sleep until a target's SIGKILL is due, or for the pause: in the kernel's queue for the lock,
 * which would else be free while we search, for so long that a waiter takes it for deserted.  Where
 * the kernel has no queue, and with --toggle, until a target ends: a process may release a lock and
 * live on.  The pidfd of an ended process would keep poll(2) from sleeping. */
static enum outcome wait_for_targets(struct preempt_state *state)
{
	bool sleeps = !state->toggles && state->lock->spec->method->family == OF_KERNEL;
	struct wait_options until = {.try_once = false};
	int64_t left = deadline_left(&state->wait->deadline) / MILLISECOND + 1;
	int64_t most = left < state->pause && !state->stopped ? left : state->pause;
	enum outcome outcome = BUSY;
	struct pollfd ends[32];
	struct target target;
	nfds_t polled = 0;
	size_t kept = 0;

	for (size_t i = 0; i < state->count; i++) {
		target = state->targets[i];
		if (!target_lives(&target)) {
			close(target.pidfd);
			continue;
		}
		state->targets[kept++] = target;
		if (polled < sizeof ends / sizeof *ends)
			ends[polled++] = (struct pollfd){target.pidfd, POLLIN, 0};
		left = target.signalled ? deadline_left(&target.kill) / MILLISECOND + 1 : most;
		most = left < most ? left : most;
	}
	state->count = kept;
	until.deadline = deadline_after(most * MILLISECOND);
	if (sleeps && wakeup_set(most * MILLISECOND, state->error) == 0)
		outcome = attempt_sleep(state->lock, &until, state->error);
	else
		poll(ends, polled, (int)most);
	wakeup_off();
	if (state->pause < 200 && state->young == 0)
		state->pause *= 2;
	return outcome == BUSY ? AGAIN : outcome;
}

/* No holder seen for a second and ten searches: it is on another host or in another container.  (On
 * a busy machine, a second may be one search of a lock that changes hands.) */
static int check_seen(struct preempt_state *state)
{
	if (is_obeying(state))
		state->nobody_since = state->searches = 0;
	else if (state->nobody_since == 0)
		state->nobody_since = clock_now();
	else if (++state->searches >= 10 && clock_now() - state->nobody_since > SECOND)
		return error_plain(state->error, ERROR_UNAVAILABLE, "cannot stop the holder: %s",
		    state->change[0] != '\0' ? state->change
					     : "it is on another host or in another PID namespace");
	return 0;
}

static enum outcome stop_and_wait(void *context)
{
	struct preempt_state *state = context;
	int64_t began = clock_now(), took;
	struct owners found;
	int count;

	if (too_late(state)) {
		state->lock->busy = state->wait->try_once ? BUSY_NOW : BUSY_TIMEOUT;
		return BUSY;
	}
	/* its numbers are those of other processes here */
	if (!process_numbers_ours() && access("/proc/stat", F_OK) == 0)
		return error_plain(state->error, ERROR_UNAVAILABLE,
		    "cannot stop the holder: /proc shows another PID namespace; mount that of this "
		    "one");
	if (owners_look(&found, state->lock, owners_kinds(state->lock), state->error) != 0)
		return FAILED;
	CRASH_POINT("replace.looked");
	count = stop_holders(state, &found);
	if (state->toggles && state->stopped && state->first.holders == 0)
		state->first = found;
	else
		owners_forget(&found);
	if (count < 0 || (state->young == 0 && check_seen(state) != 0))
		return FAILED;
	if (state->young > 0 && state->wait->try_once && !state->stopped) {
		state->lock->busy = BUSY_NOW;
		return BUSY;
	}
	if (state->toggles && state->stopped && count == 0) {
		state->lock->busy = BUSY_TOGGLED;
		return BUSY;
	}
	state->wait->waits(state->lock, state->wait->context);
	wait_left(state->lock, state->wait);
	took = (clock_now() - began) / MILLISECOND;
	/* so that a holder that ends soon ends while we sleep */
	if (state->young == 0 && state->pause < took)
		state->pause = (long)took;
	return wait_for_targets(state);
}

/* Without a ticket: after the holder's end, the lock is for those that wait. */
static enum outcome toggle_take(struct preempt_state *state)
{
	static const struct wait_options at_once = {.try_once = true};
	enum outcome outcome;

	do {
		outcome = state->stopped ? BUSY : lock_take(state->lock, &at_once, state->error);
		if (outcome == BUSY)
			outcome = stop_and_wait(state);
	} while (outcome == AGAIN);
	return outcome;
}

enum outcome preempt_take(const struct request *request, struct lock *lock,
    const struct wait_options *wait, struct error *error)
{
	struct preempt_state state = {.request = request,
	    .lock = lock,
	    .wait = wait,
	    .pause = 1,
	    .error = error};
	struct wait_options replacing = *wait;
	enum outcome outcome;

	state.toggles = request->preempt == PREEMPT_TOGGLE;
	replacing.try_once = wait->try_once && request->older == 0;
	replacing.preempt = stop_and_wait;
	replacing.preemption = &state;
	outcome = state.toggles ? toggle_take(&state) : lock_take(lock, &replacing, error);
	for (size_t i = 0; i < state.count; i++)
		close(state.targets[i].pidfd);
	free(state.targets);
	owners_forget(&state.first);
	return outcome;
}
