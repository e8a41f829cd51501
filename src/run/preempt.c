#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "sys/crash_points.h"
#include "owners/owners_look.h"
#include "run/preempt.h"
#include "owners/owner_text.h"
#include "run/targets.h"
#include "run/transit.h"

struct slot_wait {
	struct lock *lock;
	struct preemption *preemption;
	struct targets targets;
	pid_t taker;          /* of the first holder's lock, if the kernel says */
	bool toggles;
	bool doubted;         /* the last look left a doubt about the holder */
	bool passing;          /* the last look found a waiter that may give the lock back ... */
	int64_t passing_since; /* ... and so did each since then; 0: it did not */
	int64_t nobody_since; /* busy since then, and nobody signalled who lives; 0: there is one */
	int looks;            /* so many since then */
	long pause;           /* ms, until the next look */
	struct error *error;
};

static int forbidden(struct error *error, pid_t pid)
{
	if (errno == EPERM)
		return error_say(error, ERROR_PERMISSION,
		    "cannot stop the holder: process %ld is another user's", (long)pid);
	return error_set(error, ERROR_UNAVAILABLE, "cannot stop the holder, process %ld", (long)pid);
}

/* A holder that has been stopped must not be stopped in vain: from then on there is no limit. */
static bool too_late(const struct slot_wait *slot_wait)
{
	return !slot_wait->preemption->stopped && (slot_wait->preemption->wait_options->try_once ||
	    deadline_left(&slot_wait->preemption->wait_options->deadline) == 0);
}

/* By PID itself; or PID is the command of a flock(1) that has the lock for it (flock -o). */
static bool proven(const struct slot_wait *slot_wait, pid_t pid, pid_t supervisor)
{
	struct procfs_stat stat;

	return owners_verify(slot_wait->lock, pid) ||
	       (supervisor > 0 && process_stat(pid, &stat) && stat.parent == supervisor &&
		   owners_verify(slot_wait->lock, supervisor));
}

/* Prove that PID holds the lock, then signal it.  TARGET was there before the proof: should
 * it have ended since, the signal finds nobody, whoever PID is now. */
static int stop(struct slot_wait *slot_wait, pid_t pid, pid_t supervisor, int signo)
{
	struct target *target = targets_find(&slot_wait->targets, pid);

	if (target == NULL || too_late(slot_wait) || !proven(slot_wait, pid, supervisor))
		return 0;
	CRASH_POINT("replace.proven");
	if (targets_signal(target, signo) != 0)
		return forbidden(slot_wait->error, pid);
	slot_wait->preemption->stopped = true;
	if (target->server_text)
		return 0;
	target->server_text = true;
	target->kill = slot_wait->preemption->kill_after > 0 ? deadline_after(slot_wait->preemption->kill_after)
						      : deadline_never();
	slot_wait->preemption->tell(pid, slot_wait->preemption->context);
	return 0;
}

static bool shares(const struct owner *holder, pid_t pid)
{
	for (size_t i = 0; i < holder->nmembers; i++)
		if (holder->members[i].pid == pid)
			return true;
	return false;
}

/* flock(1) passes no signal on, and its command works on without it. */
static bool is_flocks(const struct owner *holder)
{
	struct procfs_stat supervisor;

	return holder->kind != 0 && process_stat(holder->supervisor, &supervisor) &&
	       strcmp(supervisor.name, "flock") == 0;
}

/* Whom to signal so that the lock comes free.  semlock passes signals on to its command and
 * then lets go; flock(1) does not, so there it has to be the command.  KILL cannot be passed
 * on: the command gets it, and semlock ends with it; where the command has not got the lock,
 * it is tied to its semlock.  Whoever is left after that is the holder at the next look. */
static pid_t whom(const struct owner *holder, int signo)
{
	struct procfs_stat supervisor;

	if (holder->supervisor == 0 || !shares(holder, holder->supervisor))
		return holder->process.pid;
	if (!shares(holder, holder->process.pid))
		return is_flocks(holder) ? holder->process.pid : holder->supervisor;
	if (signo != SIGKILL && process_stat(holder->supervisor, &supervisor) &&
	    strcmp(supervisor.name, "semlock") == 0)
		return holder->supervisor;
	return holder->process.pid;
}

static int refuse_own_caller(struct slot_wait *slot_wait, const struct owner *holder)
{
	pid_t pid;

	for (size_t i = 0; i < holder->nmembers; i++) {
		pid = holder->members[i].pid;
		if (pid == getpid() || process_descends(getpid(), pid))
			return error_say(slot_wait->error, ERROR_USAGE,
			    "held by process %ld, from which this very command was started",
			    (long)pid);
	}
	return 0;
}

/* Who is stopped has to run to obey.  semlock, whether it is stopped itself or only its
 * command, passes this on, too. */
static void let_run(const struct target *server_text, const struct owner *holder)
{
	struct procfs_stat stat;
	bool stopped = false;

	for (size_t i = 0; i < holder->nmembers; i++)
		stopped = stopped ||
			  (process_stat(holder->members[i].pid, &stat) && stat.state == 'T');
	stopped = stopped || (process_stat(server_text->pid, &stat) && stat.state == 'T');
	if (stopped)
		targets_signal(server_text, SIGCONT);
}

/* Whoever is only said to hold a lock made of files is left alone.  One that lets go while we
 * look can seem so, and /proc/locks, which changes while it is read, may list a lock twice, the
 * second time as nobody's: it takes two looks to be sure, and an end of who has been signalled.
 * Returns 1 to go on, 0 to look again, or -1. */
static int check_proven(struct slot_wait *slot_wait, const struct owner *holder)
{
	bool sure = slot_wait->doubted && !targets_obeying(&slot_wait->targets);
	char doubt[200];

	slot_wait->doubted = holder->doubt != DOUBT_NONE || holder->process.pid == 0;
	if (slot_wait->doubted && !sure)
		return 0;
	doubt_text(holder, doubt, sizeof doubt);
	if (doubt[0] != '\0')
		return error_say(slot_wait->error, ERROR_UNAVAILABLE, "cannot stop the holder: %s", doubt);
	if (holder->process.pid == 0)
		return error_say(slot_wait->error, ERROR_PERMISSION,
		    "cannot stop the holder: it is a process that we may not look into");
	return 1;
}

/* All through whom it is held; the semlock of one that is only named, to wait for its end. */
static int add_targets(struct slot_wait *slot_wait, const struct owner *holder)
{
	for (size_t i = 0; i < holder->nmembers; i++)
		if (targets_add(&slot_wait->targets, holder->members[i].pid) != 0)
			return forbidden(slot_wait->error, holder->members[i].pid);
	if (holder->kind == 0 && holder->supervisor != 0)
		targets_add(&slot_wait->targets, holder->supervisor);
	if (holder->supervisor != 0 && is_flocks(holder) && targets_add(&slot_wait->targets, holder->process.pid) != 0)
		return forbidden(slot_wait->error, holder->process.pid);
	return 0;
}

static int stop_holder(struct slot_wait *slot_wait, const struct owner *holder)
{
	int signo = slot_wait->preemption->signal;
	pid_t pid = whom(holder, signo);
	struct target *target;
	int proven = check_proven(slot_wait, holder);

	if (proven <= 0)
		return proven;
	if (refuse_own_caller(slot_wait, holder) != 0 || add_targets(slot_wait, holder) != 0)
		return -1;
	CRASH_POINT("replace.aimed");
	target = targets_find(&slot_wait->targets, pid);
	if (target != NULL && !target->server_text && stop(slot_wait, pid, holder->supervisor, signo) != 0)
		return -1;
	if (target == NULL || !target->server_text)
		return 0;
	let_run(target, holder);
	if (deadline_left(&target->kill) > 0)
		return 0;
	return stop(slot_wait, whom(holder, SIGKILL), holder->supervisor, SIGKILL);
}

/* A toggle stops who held the lock when it looked, and whom those have left behind; not who
 * gets it after them. */
static bool concerns_us(const struct slot_wait *slot_wait, const struct owner *holder)
{
	if (!slot_wait->toggles || !slot_wait->preemption->stopped)
		return true;
	for (size_t i = 0; i < holder->nmembers; i++)
		if (targets_find(&slot_wait->targets, holder->members[i].pid) != NULL)
			return true;
	return slot_wait->taker > 0 && holder->taker == slot_wait->taker;
}

/* Until the semlock whose command has ended has let go there is nobody to stop, but to wait for. */
static bool lets_go(struct slot_wait *slot_wait, const struct owner *holder)
{
	if (!holder->lets_go ||
	    (slot_wait->toggles && slot_wait->preemption->stopped &&
		targets_find(&slot_wait->targets, holder->supervisor) == NULL))
		return false;
	if (targets_add(&slot_wait->targets, holder->supervisor) != 0)
		return true; /* then we look again after a while, as ever */
	slot_wait->nobody_since = 0;
	return true;
}

/* An empty lock file that is a moment old, or a dead one's that somebody is about to take. */
static bool changes_hands(const struct owner *holder)
{
	return (holder->verdict == ALIVE && holder->doubt == DOUBT_NOBODY) ||
	       holder->doubt == DOUBT_FLOCK;
}

/* For longer than a second, only a waiter that was stopped right there: that is a holder. */
static bool passes_through(struct slot_wait *slot_wait, const struct owners *found, const struct owner *holder)
{
	if (!transit_seen(found, holder, slot_wait->lock))
		return false;
	slot_wait->passing = true;
	slot_wait->pause = 1;
	slot_wait->nobody_since = slot_wait->looks = 0;
	return slot_wait->passing_since == 0 || clock_now() - slot_wait->passing_since < SECOND;
}

/* Returns how many holders there still are to wait for, or -1 with ERROR filled. */
static int stop_all(struct slot_wait *slot_wait, const struct owners *found)
{
	const struct owner *holder;
	int count = 0;

	slot_wait->passing = false;
	for (size_t i = 0; i < found->holders; i++) {
		holder = &found->list[i];
		if (!owner_conflicts(holder, slot_wait->lock))
			continue;
		count += lets_go(slot_wait, holder);
		if (holder->verdict == DEAD || holder->lets_go || changes_hands(holder) || !concerns_us(slot_wait, holder))
			continue;
		count++;
		if (passes_through(slot_wait, found, holder))
			continue;
		if (!slot_wait->preemption->stopped)
			slot_wait->taker = holder->taker;
		if (stop_holder(slot_wait, holder) != 0)
			return -1;
	}
	if (!slot_wait->passing || slot_wait->passing_since == 0)
		slot_wait->passing_since = slot_wait->passing ? clock_now() : 0;
	return count;
}

/* Until one of them ends, or a while: a lock can be let go without an end. */
static void pause_a_while(struct slot_wait *slot_wait)
{
	int64_t left = deadline_left(&slot_wait->preemption->wait_options->deadline) / MILLISECOND + 1;

	targets_wait(&slot_wait->targets, left < slot_wait->pause && !slot_wait->preemption->stopped ? left : slot_wait->pause);
	if (slot_wait->pause < 200)
		slot_wait->pause *= 2;
}

/* Busy for a second and ten looks, and no holder to be seen: it is on another machine or in another
 * container.  (On a busy machine, a second can be one look at a lock that changes hands.) */
static int check_seen(struct slot_wait *slot_wait)
{
	if (targets_obeying(&slot_wait->targets))
		slot_wait->nobody_since = slot_wait->looks = 0;
	else if (slot_wait->nobody_since == 0)
		slot_wait->nobody_since = clock_now();
	else if (++slot_wait->looks >= 10 && clock_now() - slot_wait->nobody_since > SECOND)
		return error_say(slot_wait->error, ERROR_UNAVAILABLE,
		    "cannot stop the holder: it is not to be seen from here");
	return 0;
}

static int look_and_stop(struct slot_wait *slot_wait)
{
	struct owners found;
	int count;

	if (owners_look(&found, slot_wait->lock, owners_kinds(slot_wait->lock), slot_wait->error) != 0)
		return -1;
	CRASH_POINT("replace.looked");
	count = stop_all(slot_wait, &found);
	owners_forget(&found);
	return count;
}

static enum outcome have_stopped(void *context)
{
	struct slot_wait *slot_wait = context;
	int count;

	if (too_late(slot_wait))
		return BUSY;
	count = look_and_stop(slot_wait);
	if (count < 0 || check_seen(slot_wait) != 0)
		return FAILED;
	slot_wait->preemption->done = slot_wait->toggles && slot_wait->preemption->stopped && count == 0;
	if (slot_wait->preemption->done)
		return BUSY;
	slot_wait->preemption->wait_options->waits(slot_wait->lock, slot_wait->preemption->wait_options->context);
	pause_a_while(slot_wait);
	return AGAIN;
}

enum outcome replace_take(struct lock *lock, struct preemption *preemption, struct error *error)
{
	struct slot_wait slot_wait = {.lock = lock, .preemption = preemption, .pause = 1, .error = error};
	struct wait_options wait_options = *preemption->wait_options;
	enum outcome outcome;

	wait_options.preempt = have_stopped;
	wait_options.preemption = &slot_wait;
	outcome = lock_take(lock, &wait_options, error);
	targets_forget(&slot_wait.targets);
	return outcome;
}

/* Without a ticket: after the holder's end it is the turn of those who wait. */
enum outcome toggle_take(struct lock *lock, struct preemption *preemption, struct error *error)
{
	static const struct wait_options at_once = {.try_once = true};
	struct slot_wait slot_wait = {.lock = lock, .preemption = preemption, .toggles = true, .pause = 1, .error = error};
	enum outcome outcome;

	do {
		outcome = preemption->stopped ? BUSY : lock_take(lock, &at_once, error);
		if (outcome == BUSY)
			outcome = have_stopped(&slot_wait);
	} while (outcome == AGAIN);
	targets_forget(&slot_wait.targets);
	return outcome;
}
