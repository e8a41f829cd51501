/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "owners/owners.h"
#include "report/error.h"
#include "report/status_fd.h"
#include "run/subreaper.h"
#include "run/run.h"
#include "sys/deadline.h"
#include "sys/memory.h"
#include "sys/signals.h"

const char *messages_label(const struct request *request, const struct lock *lock)
{
	enum { SIZE = PATH_MAX + 32 };
	static char *text;

	if (request->as_flock || lock->spec->name != NULL)
		return lock->spec->name == NULL ? request->label : lock->spec->name;
	if (text == NULL && (text = memory_lasting(SIZE)) == NULL)
		return request->label;
	lock_text(lock, text, SIZE);
	return text;
}

int result_of_busy(const struct request *request, const struct lock *lock, enum busy_reason reason)
{
	static const struct {
		const char *event, *as_flock, *text, *more;
	} words[] = {
	    [BUSY_NOW] = {"busy", "failed to get lock", "busy", ""},
	    [BUSY_TIMEOUT] = {"timeout", "timeout while waiting to get lock", "still busy",
		"; the time is up"},
	    [BUSY_CROWDED] = {"busy", "failed to get lock", "busy", "; its queue is full"},
	    [BUSY_INHERITED] = {"busy", "failed to get lock", "busy", ""},
	};
	char text[400];

	if (reason == BUSY_TOGGLED) {
		status_fd_set_outcome("toggled");
		return EXIT_SUCCESS;
	}
	if (request->as_flock) {
		if (request->verbose)
			complain("%s", words[reason].as_flock);
	} else if (!request->quiet && (request->verbose || isatty(STDERR_FILENO))) {
		holder_text(lock, words[reason].text, text, sizeof text);
		complain("%s: %s%s", messages_label(request, lock), text, words[reason].more);
	}
	status_fd_event("%s", words[reason].event);
	return request->busy_status;
}

static int64_t began;

void held_begins(void)
{
	began = clock_now();
}

int64_t held_time(void)
{
	return began == 0 ? 0 : clock_now() - began;
}

void held_at_least(int64_t duration)
{
	static const int enough[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
	/* SIGCONT: the subreaper or the parent is gone */
	sigset_t signals = signals_only(SIGCONT), stop = signals_only(SIGTSTP);
	int64_t left;
	int signo = 0;

	sigaddset(&signals, SIGPWR); /* likewise, of process 1 of a container */
	for (size_t i = 0; i < sizeof enough / sizeof *enough; i++)
		if (!signals_ignored(enough[i])) /* as HUP is under nohup(1) */
			sigaddset(&signals, enough[i]);
	/* Let Ctrl-Z stop semlock itself: supervise() stops it only together with the command,
	 * which has ended. */
	sigprocmask(SIG_UNBLOCK, &stop, NULL);
	while ((left = duration - held_time()) > 0 &&
	       (signo <= 0 || signo == SIGCONT || signo == SIGPWR) && !parent_ended_by(signo) &&
	       !subreaper_killed()) {
		left = left > SECOND ? SECOND : left;
		signo = signals_wait(&signals, NULL, left);
		if (signo < 0 && errno != EAGAIN && errno != EINTR)
			/* sigtimedwait(2) is refused, by a sandbox, say */
			poll(NULL, 0, (int)(left / MILLISECOND) + 1);
	}
}

static int status_not_run(const struct request *request, int errnum)
{
	/* As "$0" is, in a script that locks itself, if it was started by "sh script". */
	bool is_here = errnum == ENOENT && request->command != NULL &&
	               strchr(request->command[0], '/') == NULL &&
	               access(request->command[0], F_OK) == 0;

	status_fd_event("not-run %s", status_fd_errno(errnum));
	if (request->command == NULL) {
		complain("%s: cannot fork the process that holds it: %s", request->label,
		    strerror(errnum));
		return EXIT_SYSTEM;
	}
	if (request->as_flock) {
		complain("failed to execute %s: %s", request->command[0], strerror(errnum));
		return errnum == ENOMEM ? EXIT_SYSTEM : EXIT_UNAVAILABLE;
	}
	complain("%s: cannot run: %s%s%s%s", request->command[0], strerror(errnum),
	    errnum == ENOENT && request->command[1] == NULL &&
		    strpbrk(request->command[0], " \t\n") != NULL
		? "; a shell command stands behind -c"
		: "",
	    is_here ? "; it is here, and not in PATH: start it as ./" : "",
	    is_here ? request->command[0] : "");
	return errnum == ENOENT ? EXIT_NOTFOUND : EXIT_NOTRUN;
}

int result_status(const struct request *request, const struct result *result)
{
	const int64_t held = held_time();

	if (result->how == ENDED_NOT_RUN)
		return status_not_run(request, result->code);
	if (result->limit > LIMIT_KEPT) {
		status_fd_event("run-timeout");
		if (!request->quiet)
			complain("%s: the command has run for longer than --run-timeout, and was "
				 "sent %s",
			    request->label,
			    result->limit == LIMIT_KILLS && request->signal != SIGKILL &&
				    request->kill_after > 0
				? "a signal, and then KILL"
			    : request->signal == 0 ? "TERM"
						   : request->signal_text);
	}
	status_fd_event("%s %d held=" STATUS_FD_SECONDS,
	    result->how == ENDED_SIGNAL ? "signal" : "exit", result->code, STATUS_FD_TIME(held));
	if (result->replaced)
		status_fd_set_outcome("replaced");
	/* The limit did not end it if semlock received the same signal (128+n), or it took SIGKILL
	 * (137, as with timeout(1)). */
	if (!result->received && (result->limit == LIMIT_REACHED ||
				     (result->limit == LIMIT_KILLS && result->how == ENDED_EXIT)))
		return EXIT_RUNTIMEOUT;
	return result->how == ENDED_SIGNAL ? 128 + result->code : result->code;
}

int result_die_of(int status, int signo)
{
	sigset_t set;

	if (signo == 0 || status != 128 + signo)
		return status;
	set = signals_only(signo);
	prctl(PR_SET_DUMPABLE, 0);
	signal(signo, SIG_DFL);
	raise(signo);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	return status;
}

int result_if_lost(const struct request *request, const struct lock *locks, int status)
{
	for (unsigned i = 0; i < request->nlocks; i++)
		if (locks[i].end.lost) {
			if (!locks[i].end.lost_said)
				complain("%s: the lock was lost while the command ran",
				    messages_label(request, &locks[i]));
			status_fd_event("lost");
			status = EXIT_LOST;
		}
	return status;
}

int result_of_error(const struct request *request, const struct lock *lock,
    const struct error *error)
{
	const bool lock_call =
	    error->kind == ERROR_LOCKABLE || (error->kind == ERROR_SYSTEM && lock != NULL);
	const int status = exit_status_of(error->kind);

	complain("%s: %s", lock == NULL ? request->label : messages_label(request, lock),
	    /* flock(1)'s words */
	    request->as_flock && lock_call && error->errnum != 0 ? strerror(error->errnum)
								 : error->text);
	status_fd_event("failed %d", status);
	return status;
}
