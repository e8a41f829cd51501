#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "crash.h"

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

void crash_point(const char *name)
{
	const char *action = wanted_at(name);

	if (action == NULL)
		return;
	raise(strncmp(action, "kill", 4) == 0 ? SIGKILL : SIGSTOP);
}

bool fault_point(const char *name)
{
	const char *action = wanted_at(name);

	if (action == NULL || strncmp(action, "fail=", 5) != 0)
		return false;
	errno = atoi(action + 5);
	return true;
}
#else
typedef int crash_points_are_compiled_out;
#endif
