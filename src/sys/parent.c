/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "sys/crash_points.h"
#include "sys/parent.h"
#include "sys/signals.h"

static pid_t parent;   /* 0: in another PID namespace: its end cannot be seen otherwise */
static pid_t watching; /* this process; 0: parent_watch() has not been called */

bool parent_is_watched(void)
{
	return watching != 0 && watching == getpid();
}

bool parent_ended(void)
{
	return parent_is_watched() && (parent == 0 || getppid() != parent);
}

static void end_with_parent(int signo)
{
	(void)signo;
	if (!parent_ended())
		return;
	raise(SIGTERM);
	_exit(128 + SIGTERM); /* process 1 of a container */
}

bool parent_watch(void)
{
	struct sigaction action = {.sa_handler = end_with_parent, .sa_flags = SA_RESTART};
	sigset_t heeded = signals_only(SIGTERM);

	sigaddset(&heeded, PARENT_SIGNAL);
	parent = getppid();
	watching = getpid();
	CRASH_POINT("parent.noted");
	if (signals_ignored(SIGTERM))
		signal(SIGTERM, SIG_DFL);
	sigaction(PARENT_SIGNAL, &action, NULL);
	sigprocmask(SIG_UNBLOCK, &heeded, NULL);
	return prctl(PR_SET_PDEATHSIG, PARENT_SIGNAL) == 0 && getppid() == parent;
}
