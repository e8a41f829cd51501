/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lock/lockset.h"
#include "owners/owners.h"
#include "methods/server/locksmith.h"
#include "report/status_fd.h"
#include "hold/keeper.h"
#include "run/run.h"
#include "run/supervise.h"
#include "sys/crash_points.h"
#include "sys/deadline.h"
#include "sys/memory.h"
#include "sys/signals.h"
#include "sys/terminal.h"

/* ---- the beginning ---- */

/* --hold --ttl: how many ns the caller may take for its next line; 0: it need not send any.  A lock
 * on a server has a lease of its own instead. */
static int64_t line_time(const struct request *request)
{
	return request->hold && request->spec.method->family != ON_SERVER ? request->spec.ttl : 0;
}

/* Will the length of the wait, or of the hold, be reported?  If not, avoid the first use of the
 * clock, which is slow. */
static bool is_timed(const struct request *request)
{
	return request->verbose || request->min_hold > 0 || request->log != NULL ||
	       status_fd >= 0 || line_time(request) > 0;
}

/* Does semlock alone hold the lock, so that the kernel does not keep it for the command if semlock
 * is killed?  With -o, and for a posix lock. */
static bool is_held_by_semlock(const struct request *request)
{
	return request->close_fd || method_can(request->spec.method, OWNED_BY_PROCESS);
}

static bool dies_with_semlock(const struct request *request)
{
	/* a background hold's keeper watches only the holder, so the placeholder must end with it
	 * (H4) */
	return is_held_by_semlock(request) || request->spec.method->family == ON_SERVER ||
	       request->detach;
}

/* May semlock end the command? */
static bool is_limited(const struct request *request)
{
	return request->run_timeout > 0 || request->dies_with_parent;
}

/* Is a subreaper needed?  It is if, without one, the command would go on without the lock, or
 * beyond its limit, when semlock is killed.  (A lock on the caller's descriptor stays with the
 * caller.) */
static bool needs_subreaper(const struct request *request)
{
	const bool holds_alone = dies_with_semlock(request) && request->locks[0].name != NULL;

	return (holds_alone || is_limited(request)) && request->command != NULL &&
	       !request->become && !request->unlock;
}

/* Is semlock in the foreground of a terminal?  Then the command must stay in the group that gets
 * the keyboard's signals. */
static bool in_foreground(void)
{
	return terminal_shows_group(getpgrp());
}

/* How the command is started: INHERITS_LOCKS, ... */
static unsigned policy_of(const struct request *request)
{
	unsigned policy = 0;

	if (request->become || !is_held_by_semlock(request))
		policy |= INHERITS_LOCKS;
	if (dies_with_semlock(request))
		policy |= DIES_WITH_SEMLOCK;
	if (request->spec.method->family != OF_KERNEL)
		policy |= NAMED_BY_LOCK;
	if (is_limited(request) && !in_foreground())
		policy |= LEADS_GROUP;
	return policy;
}

/* Returns 0, or -1 with ERROR filled. */
static int make_locks(struct run *run, struct error *error)
{
	const struct request *request = run->request;

	run->locks = memory_lasting(request->nlocks * sizeof *run->locks);
	if (run->locks == NULL)
		return error_plain(error, ERROR_SYSTEM, "out of memory");
	for (unsigned i = 0; i < request->nlocks; i++) {
		run->locks[i] = LOCK_OF(&request->locks[i]);
		run->locks[i].child = &run->child;
	}
	return 0;
}

static void make_command(struct run *run)
{
	const struct request *request = run->request;

	run->command = (struct command){
	    .argv = request->command,
	    .hold = request->hold ? &run->hold : NULL,
	    .locks = run->locks,
	    .nlocks = request->nlocks,
	    .policy = policy_of(request),
	    .semlock = command_gets_pids() ? subreaper_or_self(&run->subreaper) : 0,
	    .group = run->subreaper.group,
	    .limit = {request->run_timeout, request->signal == 0 ? SIGTERM : request->signal,
		request->kill_after},
	};
	run->child = (struct child){
	    .inherits = (run->command.policy & INHERITS_LOCKS) != 0,
	    .semlock =
		request->spec.method->family == OF_KERNEL ? 0 : subreaper_or_self(&run->subreaper),
	};
}

/* --die-with-parent: the parent has ended already.  semlock dies of SIGTERM, as if the parent had
 * ended a moment later. */
static int parent_has_ended(struct run *run)
{
	run->outcome.end = RUN_FAILED;
	run->outcome.failure = 128 + SIGTERM;
	run->outcome.signal = SIGTERM;
	complain("--die-with-parent: %s has ended",
	    run->request->parent > 0 ? "that process" : "the process that started it");
	status_fd_event("failed %d", run->outcome.failure);
	return -1;
}

/* Returns 0; or -1 with RUN->outcome or ERROR filled. */
static int watch_parent(struct run *run, struct error *error)
{
	switch (parent_watch(run->request->parent)) {
	case PARENT_WATCHED:
		return 0;
	case PARENT_ENDED:
		return parent_has_ended(run);
	case PARENT_UNSEEN:
		break;
	}
	return error_set(error, ERROR_SYSTEM, "--die-with-parent: cannot watch the parent");
}

/* Returns 0; or -1 with RUN->outcome or ERROR filled. */
static int begin(struct run *run, struct error *error)
{
	const struct request *request = run->request;

	if (request->detach && detach_start(&run->detachment, request, error) != 0)
		return -1;
	if (run->detachment.is_front)
		return 0;
	if (request->log != NULL && log_open(&run->log, request, error) != 0)
		return -1;
	if (request->dies_with_parent && watch_parent(run, error) != 0)
		return -1;
	if (needs_subreaper(request) && subreaper_start(&run->subreaper, error) != 0)
		return -1;
	if (run->subreaper.holder > 0)
		return 0;
	if (request->dies_with_parent && run->subreaper.above == 0 && parent_watch_from_afar() != 0)
		return error_no_process(error);
	if (make_locks(run, error) != 0)
		return -1;
	make_command(run);
	if (!request->hold)
		return 0;
	if (request->detach) {
		run->hold.shown_owner = request->owner;
		run->hold.caller = &run->detachment.caller;
		run->hold.id = run->detachment.id;
	}
	/* with --detach, the owner is 0, the parent: that is the keeper, which watches the real
	 * owner */
	return hold_for(&run->hold, request->detach ? 0 : request->owner, line_time(request),
	    error);
}

int run_begin(struct run *run, const struct request *request)
{
	struct error error;

	*run = (struct run){.request = request, .log = {.fd = -1}, .outcome = {.slot = -1}};
	/* if SIGCHLD is ignored, neither semlock nor the command can wait for a status */
	signal(SIGCHLD, SIG_DFL);
	if (is_timed(request))
		hold_time_begins(&run->time);
	if (begin(run, &error) == 0)
		return 0;
	if (run->outcome.end == RUN_GOES_ON)
		outcome_failed(&run->outcome, request, NULL, &error);
	return -1;
}

int run_watch(struct run *run)
{
	struct command holder = {.pid = run->subreaper.holder, .state = COMMAND_RUNS};
	struct result result = supervise(&holder, &run->subreaper);

	if (result.how == ENDED_EXIT)
		return result.code;
	if (result.code == SIGKILL)
		subreaper_end_all(&run->subreaper, 0);
	return outcome_die(&(struct run_outcome){.signal = result.code}, 128 + result.code);
}

/* ---- the command ---- */

/* Tell the command about its locks, through its environment.  Returns 0, or -1 with ERROR
 * filled. */
static int tell_locks(struct run *run, struct error *error)
{
	const struct lock *first = lockset_covering(run->locks, run->request->nlocks);

	run->outcome.slot = first->slot;
	return environment_set(first, run->request->label, error);
}

int run_start_child(struct run *run, struct error *error)
{
	if (run->child.pid > 0)
		return 0;
	if (tell_locks(run, error) != 0)
		return -1;
	run->child.pid = command_prepare(&run->command, error);
	if (run->child.pid > 0)
		return 0;
	run->child.pid = 0;
	return -1;
}

static void report_loss(const struct lock *lock)
{
	complain("%s: another process has removed the lock while the command runs",
	    lock->spec->name);
}

/* Have the method guard the locks while the command runs.  Returns 0, or -1 with ERROR filled. */
static int guard_locks(const struct run *run, struct error *error)
{
	const struct request *request = run->request;
	const struct guard guard = {
	    .locks = run->locks,
	    .count = request->nlocks,
	    .label = request->label,
	    .command = run->child.pid,
	    .on_lost = request->on_lost,
	    .report = report_loss,
	};
	int guarded = request->spec.method->guard(&guard, error);

	if (guarded > 0)
		complain("%s: %s", request->label, error->text);
	return guarded < 0 ? -1 : 0;
}

/* The locks are held: set the command's environment, and fork the placeholder of --hold up to its
 * start barrier.  Returns 0, or -1 with ERROR filled. */
static int prepare_command(struct run *run, struct error *error)
{
	if (run->child.pid > 0 || run->holds != LOCKS_TAKEN)
		return 0;
	return run->request->hold ? run_start_child(run, error) : tell_locks(run, error);
}

/* Let the holder leave the caller's group.  The subreaper keeps the helper's input open as well, so
 * that the helper releases the lock only after the subreaper has ended all descendants. */
static int watch_command(struct run *run, struct error *error)
{
	const struct locksmith *helper = run->locks->server.helper;

	return subreaper_command_starts(&run->subreaper, helper == NULL ? -1 : helper->in,
	    helper == NULL ? 0 : helper->pid, error);
}

/* Does a thread of the method watch the locks while the command runs? */
static bool is_guarded(const struct run *run)
{
	return run->request->spec.method->family != OF_KERNEL && run->holds == LOCKS_TAKEN;
}

static void keep_status_fd(const struct run *run)
{
	if (status_fd >= 0 && posix_lock_is_on(status_fd, run->locks, run->request->nlocks))
		fcntl(status_fd, F_SETFD, 0);
}

static void become(struct run *run)
{
	keep_status_fd(run);
	command_become(&run->command);
	run->outcome.end = RUN_ENDED;
	run->outcome.command = (struct result){.how = ENDED_NOT_RUN, .code = errno};
}

/* If a limit or the parent's end has ended the command, end its descendants too. */
static void end_rest(struct run *run)
{
	const struct command *command = &run->command;
	const struct result *result = &run->outcome.command;
	int64_t grace = command->limit.kill_after > 0 ? command->limit.kill_after : SECOND;

	if (result->limit == LIMIT_KILLS)
		grace = 0;
	if (run->subreaper.above != 0 && (result->limit > LIMIT_KEPT || result->orphaned))
		subreaper_end_rest(&run->subreaper,
		    command->state == COMMAND_ENDED ? command->pid : 0, grace);
}

/* With --hold --ttl, the placeholder was killed, and the caller does not know it yet: keep the lock
 * for the TTL. */
static void outlast_placeholder(struct run *run)
{
	complain("--hold: its second process has been killed: the lock is kept for --ttl");
	hold_is_orphaned();
	hold_time_at_least(&run->time, hold_time_held(&run->time) + line_time(run->request),
	    &run->subreaper);
}

/* Start the command; wait for its end, then for --min-hold.  Returns 0, or -1 with ERROR filled. */
static int execute(struct run *run, struct error *error)
{
	const struct request *request = run->request;
	struct result *result = &run->outcome.command;
	pid_t pid = command_start(&run->command, result, error);

	if (pid < 0)
		return -1;
	if (pid > 0) {
		run->outcome.pid = pid;
		*result = supervise(&run->command, &run->subreaper);
		end_rest(run);
		CRASH_POINT("command.ended");
	}
	run->outcome.end = RUN_ENDED;
	if (result->how == ENDED_NOT_RUN)
		run->outcome.pid = 0;
	if (request->detach && result->how == ENDED_EXIT)
		run->outcome.hold_end = hold_end_text(result->code);
	if (result->received)
		run->outcome.signal = result->code;
	if (line_time(request) > 0 && result->how == ENDED_SIGNAL && !result->asked)
		outlast_placeholder(run);
	if (request->min_hold > 0 && result->how != ENDED_NOT_RUN && !result->asked)
		hold_time_at_least(&run->time, request->min_hold, &run->subreaper);
	return 0;
}

/* Returns 0, or -1 with ERROR filled. */
static int run_guarded(struct run *run, struct error *error)
{
	const bool guarded = is_guarded(run);
	int status;

	/* The holder is about to leave the caller's session, in which the command stays: fork the
	 * command first. */
	if (run->subreaper.above != 0 && run->command.state == COMMAND_NEW) {
		run->child.pid = command_prepare(&run->command, error);
		if (run->child.pid < 0)
			return -1;
	}
	/* this comes before the guard, which tells the helper that the command may run */
	if (watch_command(run, error) != 0)
		return -1;
	if (guarded && guard_locks(run, error) != 0) {
		subreaper_command_ended(&run->subreaper);
		return -1;
	}
	status = execute(run, error);
	subreaper_command_ended(&run->subreaper);
	if (guarded)
		run->request->spec.method->unguard();
	return status;
}

/* Print the command, as much of it as fits in a line. */
static void say_running(const struct request *request)
{
	char text[240], **word = request->command;
	size_t used = 0;

	for (; *word != NULL && used < sizeof text - 1; word++)
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
		    word == request->command ? "" : " ", *word);
	if (used >= sizeof text || *word != NULL)
		strcpy(text + sizeof text - sizeof "...", "...");
	complain("%s: running %s", request->label, text);
}

void run_command(struct run *run)
{
	const struct request *request = run->request;
	struct error error;

	if (request->hold)
		hold_taken(&run->hold);
	if ((request->detach && detach_leave(&run->detachment, request, run->locks, &error) != 0) ||
	    prepare_command(run, &error) != 0) {
		outcome_failed(&run->outcome, request, NULL, &error);
		return;
	}
	if (request->verbose && request->as_flock)
		tell(STDOUT_FILENO, "executing %s", request->command[0]);
	else if (request->verbose && !request->hold)
		say_running(request);
	if (request->become)
		become(run);
	else if (run_guarded(run, &error) != 0)
		outcome_failed(&run->outcome, request, NULL, &error);
}

/* ---- the locks are released ---- */

/* May semlock leave the release to its own exit?  That saves a call: the kernel closes the
 * descriptors before the parent sees the exit.  But then semlock must write nothing after the
 * command's end: a slow reader, or a slow user database, would delay the release. */
static bool is_released_by_end(const struct run *run)
{
	const struct request *request = run->request;

	return request->spec.method->family == OF_KERNEL && !request->spec.to_be_removed &&
	       !outcome_speaks(&run->outcome, request);
}

/* Report what the release of LOCK has left behind. */
static void say_remains(const struct run *run, const struct lock *lock)
{
	const struct request *request = run->request;
	const struct method *method = lock->spec->method;

	/* a lost lock needs no release */
	if (lock->end.stuck != 0 && !run->outcome.lost)
		complain("%s: cannot release the lock: %s", messages_label(request, lock),
		    method->stuck_reason(lock));
	if (lock->end.littered)
		complain("%s: files were put into it: they are left beside it, in a "
			 "directory .*.semlock.gone.*",
		    messages_label(request, lock));
}

static void remove_file(const struct run *run, struct lock *lock)
{
	if (!lock->spec->method->remove(lock))
		complain("%s: not removed: the file is not empty",
		    messages_label(run->request, lock));
}

static void release_locks(struct run *run)
{
	const struct request *request = run->request;
	const struct method *method = request->spec.method;

	hold_time_ends(&run->time);
	for (unsigned i = 0; i < request->nlocks && method->family == OF_KERNEL; i++)
		/* on NFS, the server may have given the lock to another client */
		run->locks[i].end.lost = !method->owned(&run->locks[i]);
	if (!is_released_by_end(run))
		lockset_release(run->locks, request->nlocks);
}

void run_release(struct run *run)
{
	const struct request *request = run->request;
	const bool taken = run->holds == LOCKS_TAKEN;

	if (taken)
		release_locks(run);
	run->outcome.held = hold_time_held(&run->time);
	if (run->outcome.end == RUN_ENDED)
		outcome_ended(&run->outcome, request, &run->locks[0]);
	if (!taken)
		return;
	outcome_if_lost(&run->outcome, request, run->locks, request->nlocks);
	for (unsigned i = 0; i < request->nlocks; i++) {
		say_remains(run, &run->locks[i]);
		if (request->spec.to_be_removed && request->spec.method->family == OF_KERNEL)
			remove_file(run, &run->locks[i]);
	}
}

/* ---- -u ---- */

/* Returns 0, or -1 with ERROR filled. */
static int unlock(struct lock *lock, struct error *error)
{
	if (lock->spec->method->open(lock, error) != 0)
		return -1;
	/* a descriptor opened just now carries no lock */
	return lock->spec->name == NULL ? lock->spec->method->drop(lock, error) : 0;
}

void run_unlocked(struct run *run)
{
	struct error error;

	if (unlock(run->locks, &error) != 0) {
		outcome_failed(&run->outcome, run->request, NULL, &error);
		return;
	}
	if (run->request->command == NULL)
		return;
	run_command(run);
	run_release(run);
}

/* ---- the end ---- */

int run_end(struct run *run)
{
	/* reap the command only after the release: a lock may name its PID, which no other process
	 * gets while the command is a zombie */
	command_reap(&run->command);
	run->outcome.waited = hold_time_waited(&run->time);
	if (run->log.fd >= 0)
		log_write(&run->log, run->request, &run->outcome, run->locks);
	return outcome_die(&run->outcome, outcome_status(&run->outcome, run->request));
}

int run_is_under(const struct request *request)
{
	const struct lock lock = LOCK_OF(&request->locks[0]);
	enum nesting nesting;
	int fd;

	nesting = nesting_inherited(&lock, &fd);
	if (nesting == NESTING_SHARED || nesting == NESTING_AGAIN || nesting == NESTING_COVERS)
		return 0;
	return EXIT_BUSY;
}
