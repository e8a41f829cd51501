#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/crash_points.h"

#ifdef ENABLE_CRASH_POINTS
/* What is to happen at NAME: "kill", "stop", "fail=95" and whatever follows; NULL: nothing. */
static const char *wanted_at(const char *name)
{
	const char *wanted = getenv("SEMLOCK_CRASH");
	size_t length = strlen(name);

	while (wanted != NULL && *wanted != '\0') {
		if (strncmp(wanted, name, length) == 0 && wanted[length] == ':')
			return wanted + length + 1;
		wanted += strcspn(wanted, " ");
		wanted += strspn(wanted, " ");
	}
	return NULL;
}

/* So that a test knows which of them are on the way at all. */
static void write_down(const char *name)
{
	const char *file = getenv("SEMLOCK_CRASH_LOG");
	int errnum = errno;
	int fd = file == NULL ? -1 : open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

	if (fd >= 0) {
		dprintf(fd, "%s\n", name);
		close(fd);
	}
	errno = errnum;
}

void crash_point(const char *name)
{
	const char *action = wanted_at(name);

	write_down(name);
	if (action == NULL)
		return;
	raise(strncmp(action, "kill", 4) == 0 ? SIGKILL : SIGSTOP);
}

/* A signal interrupts a call once: to ask again is right, and has an end. */
bool fault_point(const char *name)
{
	static bool interrupted;
	const char *action = wanted_at(name);

	write_down(name);
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
