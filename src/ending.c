#include <config.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

#include "ending.h"
#include "events.h"
#include "exitcode.h"
#include "obtain.h"
#include "report.h"

/* The command never ran: why, and the status that says so. */
static int not_run(const struct options *opt, int errnum)
{
	event("not-run %s", event_errno(errnum));
	if (opt->command == NULL) {
		complain("%s: cannot stand by it: %s", opt->label, strerror(errnum));
		return EXIT_SYSTEM;
	}
	if (opt->as_flock) {
		complain("failed to execute %s: %s", opt->command[0], strerror(errnum));
		return errnum == ENOMEM ? EXIT_SYSTEM : EXIT_UNAVAILABLE;
	}
	complain("%s: cannot run it: %s%s", opt->command[0], strerror(errnum),
	    errnum == ENOENT && opt->command[1] == NULL && strpbrk(opt->command[0], " \t\n") != NULL
		? "; a shell command stands behind -c" : "");
	return errnum == ENOENT ? EXIT_NOTFOUND : EXIT_NOTRUN;
}

int ending_status(const struct options *opt, const struct ending *ending)
{
	if (ending->timed_out)
		event("run-timeout");
	if (ending->how != ENDED_NOT_RUN)
		event(ending->how == ENDED_SIGNAL ? "signal %d" : "exit %d", ending->code);
	if (ending->timed_out && !ending->ours && !(ending->killed && ending->how == ENDED_SIGNAL))
		return EXIT_RUNTIMEOUT;
	switch (ending->how) {
	case ENDED_EXIT:
		return ending->code;
	case ENDED_SIGNAL:
		return 128 + ending->code;
	case ENDED_NOT_RUN:
		break;
	}
	return not_run(opt, ending->code);
}

int ending_as(int status, int signo)
{
	sigset_t just_it;

	if (signo == 0 || status != 128 + signo)
		return status;
	prctl(PR_SET_DUMPABLE, 0);
	signal(signo, SIG_DFL);
	sigemptyset(&just_it);
	sigaddset(&just_it, signo);
	raise(signo);
	sigprocmask(SIG_UNBLOCK, &just_it, NULL);
	return status;
}

int ending_if_lost(const struct options *opt, const struct lock *locks, int status)
{
	for (unsigned i = 0; i < opt->nlocks; i++)
		if (locks[i].lost) {
			if (!locks[i].lost_said)
				complain("%s: the lock was lost while the command ran",
				    obtain_label(opt, &locks[i]));
			event("lost");
			status = EXIT_LOST;
		}
	return status;
}

const char *ending_words(const struct options *opt, const struct why *why)
{
	bool lock_call = why->trouble == TROUBLE_LOCKABLE || why->trouble == TROUBLE_SYSTEM;

	return opt->as_flock && lock_call && why->errnum != 0 ? strerror(why->errnum) : why->text;
}

noreturn void ending_in_trouble(const struct options *opt, const struct why *why)
{
	int status = exit_status_of(why->trouble);

	event("failed %d", status);
	die(status, "%s: %s", opt->label, ending_words(opt, why));
}
