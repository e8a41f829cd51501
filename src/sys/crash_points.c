/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/crash_points.h"

#ifdef ENABLE_CRASH_POINTS
static void log_line(const char *name, const char *what)
{
	const char *file = getenv("SEMLOCK_CRASH_LOG");
	int errnum = errno;
	int fd = file == NULL ? -1 : open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

	if (fd >= 0) {
		dprintf(fd, "%s%s\n", name, what);
		close(fd);
	}
	errno = errnum;
}

/* Log that NAME was passed.  Returns the action there: "kill", "stop", "hang", "wait=100" (ms) or
 * "fail=95", followed by the rest of the list; NULL: none. */
static const char *pass(const char *name)
{
	const char *place = getenv("SEMLOCK_CRASH");
	size_t length = strlen(name);

	log_line(name, "");
	while (place != NULL && *place != '\0') {
		if (strncmp(place, name, length) == 0 && place[length] == ':')
			return place + length + 1;
		place += strcspn(place, " ");
		place += strspn(place, " ");
	}
	return NULL;
}

/* Sleep until SIGCONT.  To other processes this looks like an ordinary sleep, and so does a process
 * in a frozen control group. */
static void hang(const char *name)
{
	sigset_t before, only_cont;

	sigemptyset(&only_cont);
	sigaddset(&only_cont, SIGCONT);
	sigprocmask(SIG_BLOCK, &only_cont, &before);
	log_line(name, " hangs");
	while (sigwaitinfo(&only_cont, NULL) != SIGCONT)
		;
	sigprocmask(SIG_SETMASK, &before, NULL);
}

void crash_point(const char *name)
{
	const char *action = pass(name);

	if (action == NULL)
		return;
	if (strncmp(action, "wait=", 5) == 0)
		poll(NULL, 0, atoi(action + 5));
	else if (strncmp(action, "hang", 4) == 0)
		hang(name);
	else
		raise(strncmp(action, "kill", 4) == 0 ? SIGKILL : SIGSTOP);
}

/* Fail with EINTR only once: the caller repeats the call, and must get on. */
bool fault_point(const char *name)
{
	static bool interrupted;
	const char *action = pass(name);

	if (action == NULL || strncmp(action, "fail=", 5) != 0)
		return false;
	errno = atoi(action + 5);
	if (errno != EINTR)
		return true;
	if (interrupted)
		return false;
	interrupted = true;
	return true;
}
#else
typedef int crash_points_are_compiled_out;
#endif
