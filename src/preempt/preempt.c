/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "owners/hold_id.h"
#include "preempt/preempt.h"
#include "preempt/target_list.h"
#include "preempt/targets.h"
#include "report/status_fd.h"
#include "sys/crash_points.h"
#include "sys/signals.h"

/* What one look at the lock has found. */
struct look {
	int holders;   /* holders that are to be ended, or waited for */
	bool yields;   /* one of them may give the lock back */
	bool doubtful; /* it is not certain that each of them holds the lock */
	/* ns until a holder is old enough to be stopped (--older); 0: none is too young */
	int64_t young;
	char change[200]; /* how the lock changes hands; "": it does not */
};

/* What a look leads to. */
enum stage {
	STAGE_SEARCH, /* the lock is busy, and no process was seen that could be stopped */
	STAGE_LEAVE,  /* a holder is left alone: it may give the lock back, or is too young */
	STAGE_STOP    /* a holder that has been signalled is still alive */
};

struct preemption {
	const struct request *request;
	struct lock *lock;
	struct deadline deadline;
	bool try_once;
	bool toggles;    /* --toggle */
	bool stopped;    /* a process has been signalled */
	bool said_young; /* --verbose has named a holder that is left alone */
	bool doubted;    /* LOOK.doubtful of the previous look */
	struct target_list targets;
	struct owners first; /* with --toggle: the holders that the first signals went to */
	struct look look;
	/* since when each look has found LOOK.yields, in ns; 0: the last one did not */
	int64_t yields_since;
	enum stage stage; /* what the last look has led to */
	/* when the looks in a row that led to STAGE began, in ns on clock_now()'s clock */
	int64_t since;
	int looks;                 /* how many looks in a row have led to STAGE */
	long pause;                /* ms until the next look */
	struct search_terms terms; /* what a look may cost, and what the looks have read */
	struct fd_walk walk;       /* the walk over all processes that the looks share */
	int64_t look_began;        /* ns on clock_now()'s clock; 0: none is under way */
	struct error *error;
};

/* Does process PID belong to this user?  Then only a sandbox can refuse a signal to it. */
static bool is_this_users(pid_t pid)
{
	struct process process;

	return process_read(pid, &process) &&
	       (process.real_user == getuid() || process.real_user == geteuid());
}

static int cannot_signal(struct error *error, pid_t pid)
{
	if (errno == EPERM && is_this_users(pid))
		return error_plain(error, ERROR_UNAVAILABLE,
		    "cannot stop the holder: process %ld is this user's, and may not be signalled "
		    "from here: a sandbox forbids it (seccomp, Landlock)",
		    (long)pid);
	if (errno == EPERM)
		return error_plain(error, ERROR_PERMISSION,
		    "cannot stop the holder: process %ld belongs to another user; run semlock as "
		    "that "
		    "user, or as root",
		    (long)pid);
	return error_set(error, ERROR_UNAVAILABLE, "cannot stop the holder, process %ld",
	    (long)pid);
}

/* Returns 0, also if PID does not exist; or -1 with ERROR filled. */
static int add_target(struct preemption *state, pid_t pid)
{
	return target_add(&state->targets, pid) == 0 ? 0 : cannot_signal(state->error, pid);
}

/* Once a holder has been signalled, the wait has no limit: that holder must not have been ended
 * in vain. */
static bool too_late(const struct preemption *state)
{
	/* With --older, a holder that is old enough is stopped even with -n. */
	const bool try_once = state->try_once && state->request->older == 0;

	return !state->stopped && (try_once || deadline_left(&state->deadline) == 0);
}

/* Does PID hold the lock now?  Or does SUPERVISOR, a flock -o that runs PID as its command? */
static bool proven_holder(struct preemption *state, pid_t pid, pid_t supervisor)
{
	struct procfs_stat seen;

	return owners_verify(state->lock, pid, &state->walk) ||
	       (supervisor > 0 && process_stat(pid, &seen) && seen.parent == supervisor &&
		   owners_verify(state->lock, supervisor, &state->walk));
}

/* Prove that PID holds the lock, then signal it.  The target's pidfd was opened before the proof:
 * if PID has ended since, the signal reaches no process.  Returns 0, also if there is no proof or
 * the time is up; or -1 with ERROR filled. */
static int signal_holder(struct preemption *state, pid_t pid, pid_t supervisor, int signo)
{
	struct target *target = target_find(&state->targets, pid);

	if (target == NULL || too_late(state) || !proven_holder(state, pid, supervisor))
		return 0;
	CRASH_POINT("replace.proven");
	if (target_signal(target, signo) != 0)
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

/* Refuse to end a placeholder: the program that holds the lock with semlock --hold would run on
 * without the lock.  Returns 0 if HOLDER is no placeholder, else -1 with ERROR filled. */
static int refuse_placeholder(struct preemption *state, const struct owner *holder)
{
	pid_t pid = owner_caller_of_hold(holder);
	struct process caller;
	char command[80], id[HOLD_ID_SIZE], label[sizeof state->error->text];

	if (pid == 0)
		return 0;
	if (owner_find_hold(holder, id, NULL)) {
		text_for_shell(label, sizeof label, state->request->label);
		snprintf(command, sizeof command, "process %ld", (long)pid);
		return error_plain(state->error, ERROR_UNAVAILABLE,
		    "cannot stop the holder: %s holds the lock with semlock --hold, in the "
		    "background; "
		    "to end that: semlock --release=%s %s",
		    pid == 1 ? "a program" : command, id, label);
	}
	if (pid == 1 || !process_read(pid, &caller))
		return error_plain(state->error, ERROR_UNAVAILABLE,
		    "cannot stop the holder: a program holds the lock with semlock --hold, and "
		    "would "
		    "run on without it");
	process_command(&caller, command, sizeof command, 40);
	return error_plain(state->error, ERROR_UNAVAILABLE,
	    "cannot stop the holder: process %ld (%s) holds the lock with semlock --hold, and "
	    "would "
	    "run on without it: end that process",
	    (long)pid, command);
}

static int refuse_own_caller(struct preemption *state, const struct owner *holder)
{
	pid_t pid;

	for (size_t i = 0; i < holder->nmembers; i++) {
		pid = holder->members[i].pid;
		if (pid == getpid() || process_descends(getpid(), pid, 0, 0))
			return error_plain(state->error, ERROR_USAGE,
			    "cannot stop the holder: process %ld is an ancestor of this command, "
			    "which would end with it; run the command outside the lock",
			    (long)pid);
	}
	return 0;
}

/* A stopped process does not act on its signal: send SIGCONT, which semlock passes on to a
 * stopped command. */
static void continue_stopped(const struct target *target, const struct owner *holder)
{
	bool stopped = process_stopped(target->pid);

	for (size_t i = 0; i < holder->nmembers; i++)
		stopped = stopped || process_stopped(holder->members[i].pid);
	if (stopped)
		target_signal(target, SIGCONT);
}

/* Is it certain that HOLDER holds the lock, so that its process PID may be signalled?  There is a
 * doubt if only the lock's record names HOLDER, or if PID only has an open descriptor.  A doubt can
 * pass: the lock may be released during a search, and /proc/locks, which changes while it is read,
 * can list a lock twice, the second time without its process.  So a doubt counts if two searches in
 * a row find it, and no process that was signalled is alive.  Returns 1 if there is no doubt; 0 to
 * search again; -1 with ERROR filled if the doubt counts. */
static int check_doubt(struct preemption *state, const struct owner *holder, pid_t pid)
{
	bool sure = state->doubted && !target_list_obeys(&state->targets);
	const struct target *known = target_find(&state->targets, pid);
	const char *missing =
	    known != NULL && known->proven ? NULL : targets_unproven(holder, pid, state->lock);
	bool doubtful = holder->doubt != DOUBT_NONE || holder->process.pid == 0 || missing != NULL;
	struct process process;
	char doubt[200], command[80];

	state->look.doubtful = state->look.doubtful || doubtful;
	if (doubtful && !sure)
		return 0;
	doubt_text(holder, doubt, sizeof doubt);
	if (doubt[0] != '\0')
		return error_plain(state->error, ERROR_UNAVAILABLE, "cannot stop the holder: %s",
		    doubt);
	if (holder->process.pid == 0)
		return error_plain(state->error, ERROR_PERMISSION,
		    "cannot stop the holder: no permission to see its process; run semlock "
		    "as its user or as root, and outside of a sandbox");
	if (missing != NULL && process_read(pid, &process)) {
		process_command(&process, command, sizeof command, 40);
		return error_plain(state->error, ERROR_UNAVAILABLE,
		    "cannot stop the holder: process %ld (%s) %s", (long)pid, command, missing);
	}
	return missing == NULL;
}

/* Add to the targets: all processes through which HOLDER holds the lock; a semlock that only the
 * lock's record names, to wait for its end; and the command of a flock(1).  Returns 0, or -1 with
 * ERROR filled. */
static int add_targets(struct preemption *state, const struct owner *holder)
{
	struct target *target;

	for (size_t i = 0; i < holder->nmembers; i++) {
		if (add_target(state, holder->members[i].pid) != 0)
			return -1;
		target = target_find(&state->targets, holder->members[i].pid);
		if (target != NULL && !target->proven)
			target->proven = targets_is_of_job(holder, target->pid);
	}
	if (holder->kind == 0 && holder->supervisor != 0)
		add_target(state, holder->supervisor);
	return holder->supervisor != 0 && targets_of_flock(holder)
	           ? add_target(state, holder->process.pid)
	           : 0;
}

/* May process PID be signalled?  Returns -1 with ERROR filled if not, and PID holds HOLDER's lock;
 * else 0. */
static int check_permission(struct preemption *state, const struct owner *holder, pid_t pid)
{
	const struct target *target = target_find(&state->targets, pid);

	if (target == NULL || target_signal(target, 0) == 0 || errno != EPERM ||
	    !proven_holder(state, pid, holder->supervisor))
		return 0;
	errno = EPERM;
	return cannot_signal(state->error, pid);
}

/* Can HOLDER be stopped?  Returns 1 if so; 0 if another look must decide; -1 with ERROR filled if
 * not. */
static int judge_holder(struct preemption *state, const struct owner *holder)
{
	const pid_t pid = targets_choose(holder, state->request->preempt_signal);
	const int sure = check_doubt(state, holder, pid);

	if (sure <= 0)
		return sure;
	if (refuse_placeholder(state, holder) != 0 || refuse_own_caller(state, holder) != 0 ||
	    add_targets(state, holder) != 0 || check_permission(state, holder, pid) != 0)
		return -1;
	return 1;
}

static int stop_holder(struct preemption *state, const struct owner *holder)
{
	int signo = state->request->preempt_signal;
	pid_t pid = targets_choose(holder, signo);
	struct target *target;

	CRASH_POINT("replace.aimed");
	target = target_find(&state->targets, pid);
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

/* --toggle ends the holders of its first search and the processes that they leave behind, not
 * the next holder. */
static bool is_concerned(const struct preemption *state, const struct owner *holder)
{
	bool concerned = state->first.holders == 0;

	for (size_t i = 0; i < holder->nmembers; i++)
		concerned =
		    concerned || target_find(&state->targets, holder->members[i].pid) != NULL;
	for (size_t i = 0; i < state->first.holders; i++)
		concerned =
		    concerned || (holder->taker > 0 && holder->taker == state->first.list[i].taker);
	return concerned;
}

/* Is HOLDER's lock file not yet filled in, or is another process taking it over from a dead
 * holder? */
static bool changes_hands(const struct owner *holder)
{
	return (holder->verdict == ALIVE && holder->doubt == DOUBT_NOBODY) ||
	       holder->doubt == DOUBT_FLOCK;
}

/* Leave HOLDER alone if it may give the lock back, and note that in STATE->look.  After a second,
 * it counts as a holder nevertheless: it may be a waiter that was stopped at this point.  Returns
 * true if it is left alone. */
static bool leave_yielding(struct preemption *state, const struct owners *found,
    const struct owner *holder)
{
	if (!targets_may_yield(found, holder, state->lock))
		return false;
	state->look.yields = true;
	return state->yields_since == 0 || clock_now() - state->yields_since < SECOND;
}

/* With --older, leave HOLDER alone until it ends, releases the lock (a process can do that and live
 * on), or is old enough.  If its age is unknown, do not leave it alone: the proofs decide.  Returns
 * 1 if it is left alone; 0 if not; -1 with ERROR filled. */
static int leave_young(struct preemption *state, const struct owner *holder)
{
	int64_t age = clock_realtime() - holder->since,
		left = state->request->older - (age < 0 ? 0 : age);
	char since[32];

	if (holder->since == 0 || left <= 0)
		return 0;
	moment_text(holder->since, since, sizeof since);
	if (state->request->verbose && !state->said_young)
		complain("%s: process %ld is left alone until it %s for %lld s (since %s)",
		    state->request->label, (long)holder->process.pid,
		    holder->since_exact ? "has held the lock" : "has run",
		    (long long)(state->request->older / SECOND), since);
	state->said_young = true;
	state->look.young = left;
	return add_targets(state, holder) == 0 ? 1 : -1;
}

/* Set TO_STOP for each of the holders FOUND, and fill STATE->look.  Returns 0, or -1 with ERROR
 * filled: one of them cannot be stopped. */
static int judge_holders(struct preemption *state, const struct owners *found, bool *to_stop)
{
	for (size_t i = 0; i < found->holders; i++) {
		const struct owner *holder = &found->list[i];
		int judged;

		to_stop[i] = false;
		if (!owner_conflicts(holder, state->lock))
			continue;
		if (changes_hands(holder))
			doubt_text(holder, state->look.change, sizeof state->look.change);
		if (holder->verdict == DEAD || changes_hands(holder) ||
		    !is_concerned(state, holder))
			continue;

		state->look.holders++;
		if (leave_yielding(state, found, holder))
			continue;
		judged = leave_young(state, holder);
		if (judged > 0)
			continue;
		if (judged == 0)
			judged = judge_holder(state, holder);
		if (judged < 0)
			return -1;
		to_stop[i] = judged > 0;
	}
	return 0;
}

/* Leave alone or stop the holders FOUND, and fill STATE->look.  All are judged before the first is
 * signalled, so that none is ended in vain.  Returns 0, or -1 with ERROR filled. */
static int stop_holders(struct preemption *state, const struct owners *found)
{
	bool *const to_stop = malloc(found->holders + 1);
	int result;

	if (to_stop == NULL)
		return error_plain(state->error, ERROR_SYSTEM, "out of memory");
	result = judge_holders(state, found, to_stop);
	if (state->look.doubtful && !state->stopped) /* signal nobody before the next look */
		memset(to_stop, false, found->holders);
	for (size_t i = 0; result == 0 && i < found->holders; i++)
		if (to_stop[i])
			result = stop_holder(state, &found->list[i]);
	free(to_stop);
	return result;
}

/* Sleep until a target's SIGKILL is due, but at most for STATE->pause.  For a kernel lock, only
 * return that time, in ns: the caller sleeps in the kernel's queue for the lock.  For other locks,
 * and with --toggle, sleep here, or until a target ends, and return 0.  The pause limits the sleep
 * because a process can release a lock and live on.  Prune the targets first: the pidfd of an ended
 * process would keep poll(2) from sleeping. */
static int64_t wait_for_targets(struct preemption *state)
{
	const bool sleeps = !state->toggles && state->lock->spec->method->family == OF_KERNEL;
	const int64_t left = deadline_left(&state->deadline) / MILLISECOND + 1;
	int64_t most = left < state->pause && !state->stopped ? left : state->pause, kill;

	target_list_prune(&state->targets);
	kill = target_list_kill_in(&state->targets);
	most = kill < most ? kill : most;
	if (sleeps)
		return most * MILLISECOND;
	target_list_await(&state->targets, most);
	return 0;
}

static enum stage stage_after(const struct preemption *state)
{
	if (state->look.young > 0 || state->look.yields)
		return STAGE_LEAVE;
	return target_list_obeys(&state->targets) ? STAGE_STOP : STAGE_SEARCH;
}

/* Count the looks in a row that led to STAGE.  If they see no holder for more than a second, and in
 * more than ten looks, the holder is on another host or in another container.  (One second is not
 * enough: on a busy machine, one look at a lock that changes hands may take that long.)  Returns 0,
 * or -1 with ERROR filled. */
static int preempt_enter(struct preemption *state, enum stage stage)
{
	const int64_t now = clock_now();

	if (state->looks == 0 || stage != state->stage) {
		state->stage = stage;
		state->since = now;
		state->looks = 0;
	}
	state->looks++;
	if (stage != STAGE_SEARCH || state->looks <= 10 || now - state->since <= SECOND)
		return 0;
	return error_plain(state->error, ERROR_UNAVAILABLE, "cannot stop the holder: %s",
	    state->look.change[0] != '\0' ? state->look.change
					  : "it is on another host, in another PID namespace, or "
					    "hidden by a sandbox");
}

static enum outcome preempt_busy(struct preemption *state, enum busy_reason reason)
{
	state->lock->busy = reason;
	return BUSY;
}

/* Refuse a /proc of another PID namespace: its PIDs mean other processes here. */
static int check_proc(struct error *error)
{
	if (process_numbers_ours() || access("/proc/stat", F_OK) != 0)
		return 0;
	return error_plain(error, ERROR_UNAVAILABLE,
	    "cannot stop the holder: /proc shows another PID namespace; mount that of this one");
}

/* Look for the holders, and signal them.  Returns 0; 1 after one piece of a look; or -1 with ERROR
 * filled. */
static int look_and_stop(struct preemption *state)
{
	struct owners found;
	int stopped, looked;

	if (check_proc(state->error) != 0)
		return -1;
	looked = owners_look(&found, state->lock, &state->terms, state->error);
	if (looked != 0)
		return looked;
	CRASH_POINT("replace.looked");

	state->doubted = state->look.doubtful;
	state->look = (struct look){0};
	stopped = stop_holders(state, &found);
	if (!state->look.yields || state->yields_since == 0)
		state->yields_since = state->look.yields ? clock_now() : 0;
	if (state->toggles && state->stopped && state->first.holders == 0)
		state->first = found;
	else
		owners_forget(&found);
	return stopped == 0 ? preempt_enter(state, stage_after(state)) : -1;
}

/* Set how long to sleep until the next look, after one that took TOOK ns: longer each time, and at
 * least as long as a look, so that a holder that is about to end does so while we sleep. */
static void set_pause(struct preemption *state, int64_t took)
{
	const int64_t young = state->look.young;
	const int64_t least = took < SECOND ? took : SECOND;

	if (young > 0) {
		state->pause = young < SECOND ? (long)(young / MILLISECOND) + 1 : 1000;
		return;
	}
	if (state->looks == 1 || state->stage == STAGE_LEAVE)
		state->pause = 1;
	else if (state->pause < 200)
		state->pause *= 2;
	if (state->pause < least / MILLISECOND)
		state->pause = (long)(least / MILLISECOND);
}

/* One look, or a piece of it.  AGAIN: the lock may be free now; before the next look, sleep for
 * *NAP ns. */
static enum outcome preempt_once(struct preemption *state, int64_t *nap)
{
	int looked;

	if (too_late(state))
		return preempt_busy(state, state->try_once ? BUSY_NOW : BUSY_TIMEOUT);
	if (state->look_began == 0)
		state->look_began = clock_now();
	looked = look_and_stop(state);
	*nap = 0;
	if (looked != 0)
		return looked > 0 ? AGAIN : FAILED;
	if (state->look.young > 0 && state->try_once && !state->stopped)
		return preempt_busy(state, BUSY_NOW);
	if (state->toggles && state->stopped && state->look.holders == 0)
		return preempt_busy(state, BUSY_TOGGLED);

	set_pause(state, clock_now() - state->look_began);
	state->look_began = 0;
	*nap = wait_for_targets(state);
	return AGAIN;
}

enum outcome preempt_stop(struct preemption *state, struct lock *lock, int64_t *nap,
    struct error *error)
{
	enum outcome outcome;

	state->lock = lock;
	state->error = error;
	do
		outcome = preempt_once(state, nap);
	while (outcome == AGAIN && state->toggles && state->stopped);
	return outcome;
}

struct preemption *preempt_begin(const struct request *request, const struct deadline *deadline,
    bool try_once, struct error *error)
{
	struct preemption *state = calloc(1, sizeof *state);

	if (state == NULL) {
		error_set(error, ERROR_SYSTEM, "out of memory");
		return NULL;
	}
	*state = (struct preemption){
	    .request = request,
	    .deadline = *deadline,
	    .try_once = try_once,
	    .toggles = request->preempt == PREEMPT_TOGGLE,
	    .terms = SEARCH_FOR_PROOF,
	    .walk.piece = 10 * MILLISECOND,
	};
	state->terms.walk = &state->walk;
	return state;
}

void preempt_end(struct preemption *state)
{
	target_list_forget(&state->targets);
	owners_forget(&state->first);
	search_terms_forget(&state->terms);
	fd_walk_drop(&state->walk);
	free(state);
}
