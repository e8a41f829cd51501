#include <config.h>

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

#include "run/result.h"
#include "report/status_fd.h"
#include "report/exitcode.h"
#include "run/messages.h"
#include "run/min_hold.h"
#include "report/error.h"
#include "sys/signals.h"

static int status_not_run(const struct request *request, int errnum)
{
	status_fd_event("not-run %s", status_fd_errno(errnum));
	if (request->command == NULL) {
		complain("%s: cannot fork the process that holds it: %s", request->label, strerror(errnum));
		return EXIT_SYSTEM;
	}
	if (request->as_flock) {
		complain("failed to execute %s: %s", request->command[0], strerror(errnum));
		return errnum == ENOMEM ? EXIT_SYSTEM : EXIT_UNAVAILABLE;
	}
	complain("%s: cannot run: %s%s", request->command[0], strerror(errnum),
	    errnum == ENOENT && request->command[1] == NULL && strpbrk(request->command[0], " \t\n") != NULL
		? "; a shell command stands behind -c" : "");
	return errnum == ENOENT ? EXIT_NOTFOUND : EXIT_NOTRUN;
}

int result_status(const struct request *request, const struct result *result)
{
	int64_t held = held_time();

	if (result->how == ENDED_NOT_RUN)
		return status_not_run(request, result->code);
	if (result->timed_out)
		status_fd_event("run-timeout");
	status_fd_event("%s %d held=" STATUS_FD_SECONDS, result->how == ENDED_SIGNAL ? "signal" : "exit",
	    result->code, STATUS_FD_TIME(held));
	if (result->by_limit)
		return EXIT_RUNTIMEOUT;
	return result->how == ENDED_SIGNAL ? 128 + result->code : result->code;
}

int result_die_of(int status, int signo)
{
	sigset_t set = signals_only(signo);

	if (signo == 0 || status != 128 + signo)
		return status;
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

/* As flock, a failed lock call is reported in flock(1)'s words. */
static const char *error_words(const struct request *request, const struct lock *lock, const struct error *error)
{
	bool lock_call = error->kind == ERROR_LOCKABLE || (error->kind == ERROR_SYSTEM && lock != NULL);

	return request->as_flock && lock_call && error->errnum != 0 ? strerror(error->errnum) : error->text;
}

int result_of_error(const struct request *request, const struct lock *lock, const struct error *error)
{
	int status = exit_status_of(error->kind);

	complain("%s: %s", lock == NULL ? request->label : messages_label(request, lock), error_words(request, lock, error));
	status_fd_event("failed %d", status);
	return status;
}
