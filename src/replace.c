#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "crash.h"
#include "occupants.h"
#include "replace.h"
#include "sentence.h"
#include "targets.h"
#include "transit.h"

struct hunt {
	struct lock *lock;
	struct steering *steering;
	struct targets targets;
	pid_t taker;          /* of the first holder's lock, if the kernel says */
	bool toggles;
	bool doubted;         /* the last look left a doubt about the holder */
	bool passing;          /* the last look found a waiter that may give the lock back ... */
	int64_t passing_since; /* ... and so did each since then; 0: it did not */
	int64_t nobody_since; /* busy since then, and nobody signalled who lives; 0: there is one */
	int looks;            /* so many since then */
	long pause;           /* ms, until the next look */
	struct why *why;
};

static int forbidden(struct why *why, pid_t pid)
{
	if (errno == EPERM)
		return why_say(why, TROUBLE_PERMISSION,
		    "cannot stop the holder: process %ld is another user's", (long)pid);
	return why_set(why, TROUBLE_UNAVAILABLE, "cannot stop the holder, process %ld", (long)pid);
}

/* A holder that has been stopped must not be stopped in vain: from then on there is no limit. */
static bool too_late(const struct hunt *hunt)
{
	return !hunt->steering->stopped && (hunt->steering->patience->try_once ||
	    deadline_left(&hunt->steering->patience->deadline) == 0);
}

/* By PID itself; or PID is the command of a flock(1) that has the lock for it (flock -o). */
static bool proven(const struct hunt *hunt, pid_t pid, pid_t watcher)
{
	struct procfs_stat stat;

	return occupants_proven(hunt->lock, pid) ||
	       (watcher > 0 && process_stat(pid, &stat) && stat.parent == watcher &&
		   occupants_proven(hunt->lock, watcher));
}

/* Prove that PID holds the lock, then signal it.  TARGET was there before the proof: should
 * it have ended since, the signal finds nobody, whoever PID is now. */
static int stop(struct hunt *hunt, pid_t pid, pid_t watcher, int signo)
{
	struct target *target = targets_find(&hunt->targets, pid);

	if (target == NULL || too_late(hunt) || !proven(hunt, pid, watcher))
		return 0;
	CRASH_POINT("replace.proven");
	if (targets_signal(target, signo) != 0)
		return forbidden(hunt->why, pid);
	hunt->steering->stopped = true;
	if (target->told)
		return 0;
	target->told = true;
	target->kill = hunt->steering->kill_after > 0 ? deadline_after(hunt->steering->kill_after)
						      : deadline_never();
	hunt->steering->tell(pid, hunt->steering->context);
	return 0;
}

static bool shares(const struct occupant *holder, pid_t pid)
{
	for (size_t i = 0; i < holder->nmembers; i++)
		if (holder->members[i].pid == pid)
			return true;
	return false;
}

/* flock(1) passes no signal on, and its command works on without it. */
static bool is_flocks(const struct occupant *holder)
{
	struct procfs_stat watcher;

	return holder->kind != 0 && process_stat(holder->watcher, &watcher) &&
	       strcmp(watcher.name, "flock") == 0;
}

/* Whom to signal so that the lock comes free.  semlock passes signals on to its command and
 * then lets go; flock(1) does not, so there it has to be the command.  KILL cannot be passed
 * on: the command gets it, and semlock ends with it; where the command has not got the lock,
 * it is tied to its semlock.  Whoever is left after that is the holder at the next look. */
static pid_t whom(const struct occupant *holder, int signo)
{
	struct procfs_stat watcher;

	if (holder->watcher == 0 || !shares(holder, holder->watcher))
		return holder->process.pid;
	if (!shares(holder, holder->process.pid))
		return is_flocks(holder) ? holder->process.pid : holder->watcher;
	if (signo != SIGKILL && process_stat(holder->watcher, &watcher) &&
	    strcmp(watcher.name, "semlock") == 0)
		return holder->watcher;
	return holder->process.pid;
}

static int refuse_own_caller(struct hunt *hunt, const struct occupant *holder)
{
	pid_t pid;

	for (size_t i = 0; i < holder->nmembers; i++) {
		pid = holder->members[i].pid;
		if (pid == getpid() || process_descends(getpid(), pid))
			return why_say(hunt->why, TROUBLE_USAGE,
			    "held by process %ld, from which this very command was started",
			    (long)pid);
	}
	return 0;
}

/* Who is stopped has to run to obey.  semlock, whether it is stopped itself or only its
 * command, passes this on, too. */
static void let_run(const struct target *told, const struct occupant *holder)
{
	struct procfs_stat stat;
	bool stopped = false;

	for (size_t i = 0; i < holder->nmembers; i++)
		stopped = stopped ||
			  (process_stat(holder->members[i].pid, &stat) && stat.state == 'T');
	stopped = stopped || (process_stat(told->pid, &stat) && stat.state == 'T');
	if (stopped)
		targets_signal(told, SIGCONT);
}

/* Whoever is only said to hold a lock made of files is left alone.  One that lets go while we
 * look can seem so, and /proc/locks, which changes while it is read, may list a lock twice, the
 * second time as nobody's: it takes two looks to be sure, and an end of who has been signalled.
 * Returns 1 to go on, 0 to look again, or -1. */
static int check_proven(struct hunt *hunt, const struct occupant *holder)
{
	bool sure = hunt->doubted && !targets_obeying(&hunt->targets);
	char doubt[200];

	hunt->doubted = holder->doubt != DOUBT_NONE || holder->process.pid == 0;
	if (hunt->doubted && !sure)
		return 0;
	doubt_text(holder, doubt, sizeof doubt);
	if (doubt[0] != '\0')
		return why_say(hunt->why, TROUBLE_UNAVAILABLE, "cannot stop the holder: %s", doubt);
	if (holder->process.pid == 0)
		return why_say(hunt->why, TROUBLE_PERMISSION,
		    "cannot stop the holder: it is a process that we may not look into");
	return 1;
}

/* All through whom it is held; the semlock of one that is only named, to wait for its end. */
static int add_targets(struct hunt *hunt, const struct occupant *holder)
{
	for (size_t i = 0; i < holder->nmembers; i++)
		if (targets_add(&hunt->targets, holder->members[i].pid) != 0)
			return forbidden(hunt->why, holder->members[i].pid);
	if (holder->kind == 0 && holder->watcher != 0)
		targets_add(&hunt->targets, holder->watcher);
	if (holder->watcher != 0 && is_flocks(holder) && targets_add(&hunt->targets, holder->process.pid) != 0)
		return forbidden(hunt->why, holder->process.pid);
	return 0;
}

static int stop_holder(struct hunt *hunt, const struct occupant *holder)
{
	int signo = hunt->steering->signal;
	pid_t pid = whom(holder, signo);
	struct target *target;
	int proven = check_proven(hunt, holder);

	if (proven <= 0)
		return proven;
	if (refuse_own_caller(hunt, holder) != 0 || add_targets(hunt, holder) != 0)
		return -1;
	CRASH_POINT("replace.aimed");
	target = targets_find(&hunt->targets, pid);
	if (target != NULL && !target->told && stop(hunt, pid, holder->watcher, signo) != 0)
		return -1;
	if (target == NULL || !target->told)
		return 0;
	let_run(target, holder);
	if (deadline_left(&target->kill) > 0)
		return 0;
	return stop(hunt, whom(holder, SIGKILL), holder->watcher, SIGKILL);
}

/* A toggle stops who held the lock when it looked, and whom those have left behind; not who
 * gets it after them. */
static bool concerns_us(const struct hunt *hunt, const struct occupant *holder)
{
	if (!hunt->toggles || !hunt->steering->stopped)
		return true;
	for (size_t i = 0; i < holder->nmembers; i++)
		if (targets_find(&hunt->targets, holder->members[i].pid) != NULL)
			return true;
	return hunt->taker > 0 && holder->taker == hunt->taker;
}

/* Until the semlock whose command has ended has let go there is nobody to stop, but to wait for. */
static bool lets_go(struct hunt *hunt, const struct occupant *holder)
{
	if (!holder->lets_go ||
	    (hunt->toggles && hunt->steering->stopped &&
		targets_find(&hunt->targets, holder->watcher) == NULL))
		return false;
	if (targets_add(&hunt->targets, holder->watcher) != 0)
		return true; /* then we look again after a while, as ever */
	hunt->nobody_since = 0;
	return true;
}

/* An empty lock file that is a moment old, or a dead one's that somebody is about to take. */
static bool changes_hands(const struct occupant *holder)
{
	return (holder->verdict == ALIVE && holder->doubt == DOUBT_NOBODY) ||
	       holder->doubt == DOUBT_FLOCK;
}

/* For longer than a second, only a waiter that was stopped right there: that is a holder. */
static bool passes_through(struct hunt *hunt, const struct occupants *found, const struct occupant *holder)
{
	if (!transit_seen(found, holder, hunt->lock))
		return false;
	hunt->passing = true;
	hunt->pause = 1;
	hunt->nobody_since = hunt->looks = 0;
	return hunt->passing_since == 0 || clock_now() - hunt->passing_since < SECOND;
}

/* Returns how many holders there still are to wait for, or -1 with WHY filled. */
static int stop_all(struct hunt *hunt, const struct occupants *found)
{
	const struct occupant *holder;
	int count = 0;

	hunt->passing = false;
	for (size_t i = 0; i < found->holders; i++) {
		holder = &found->list[i];
		if (!occupant_hinders(holder, hunt->lock))
			continue;
		count += lets_go(hunt, holder);
		if (holder->verdict == DEAD || holder->lets_go || changes_hands(holder) || !concerns_us(hunt, holder))
			continue;
		count++;
		if (passes_through(hunt, found, holder))
			continue;
		if (!hunt->steering->stopped)
			hunt->taker = holder->taker;
		if (stop_holder(hunt, holder) != 0)
			return -1;
	}
	if (!hunt->passing || hunt->passing_since == 0)
		hunt->passing_since = hunt->passing ? clock_now() : 0;
	return count;
}

/* Until one of them ends, or a while: a lock can be let go without an end. */
static void pause_a_while(struct hunt *hunt)
{
	int64_t left = deadline_left(&hunt->steering->patience->deadline) / MILLISECOND + 1;

	targets_wait(&hunt->targets, left < hunt->pause && !hunt->steering->stopped ? left : hunt->pause);
	if (hunt->pause < 200)
		hunt->pause *= 2;
}

/* Busy for a second and ten looks, and no holder to be seen: it is on another machine or in another
 * container.  (On a busy machine, a second can be one look at a lock that changes hands.) */
static int check_seen(struct hunt *hunt)
{
	if (targets_obeying(&hunt->targets))
		hunt->nobody_since = hunt->looks = 0;
	else if (hunt->nobody_since == 0)
		hunt->nobody_since = clock_now();
	else if (++hunt->looks >= 10 && clock_now() - hunt->nobody_since > SECOND)
		return why_say(hunt->why, TROUBLE_UNAVAILABLE,
		    "cannot stop the holder: it is not to be seen from here");
	return 0;
}

static int look_and_stop(struct hunt *hunt)
{
	struct occupants found;
	int count;

	if (occupants_look(&found, hunt->lock, occupants_kinds(hunt->lock), hunt->why) != 0)
		return -1;
	CRASH_POINT("replace.looked");
	count = stop_all(hunt, &found);
	occupants_forget(&found);
	return count;
}

static enum outcome have_stopped(void *context)
{
	struct hunt *hunt = context;
	int count;

	if (too_late(hunt))
		return BUSY;
	count = look_and_stop(hunt);
	if (count < 0 || check_seen(hunt) != 0)
		return FAILED;
	hunt->steering->done = hunt->toggles && hunt->steering->stopped && count == 0;
	if (hunt->steering->done)
		return BUSY;
	hunt->steering->patience->waits(hunt->lock, hunt->steering->patience->context);
	pause_a_while(hunt);
	return AGAIN;
}

enum outcome replace_take(struct lock *lock, struct steering *steering, struct why *why)
{
	struct hunt hunt = {.lock = lock, .steering = steering, .pause = 1, .why = why};
	struct patience patience = *steering->patience;
	enum outcome outcome;

	patience.preempt = have_stopped;
	patience.preemption = &hunt;
	outcome = lock_take(lock, &patience, why);
	targets_forget(&hunt.targets);
	return outcome;
}

/* Without a ticket: after the holder's end it is the turn of those who wait. */
enum outcome toggle_take(struct lock *lock, struct steering *steering, struct why *why)
{
	static const struct patience at_once = {.try_once = true};
	struct hunt hunt = {.lock = lock, .steering = steering, .toggles = true, .pause = 1, .why = why};
	enum outcome outcome;

	do {
		outcome = steering->stopped ? BUSY : lock_take(lock, &at_once, why);
		if (outcome == BUSY)
			outcome = have_stopped(&hunt);
	} while (outcome == AGAIN);
	targets_forget(&hunt.targets);
	return outcome;
}
