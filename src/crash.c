#include <config.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "crash.h"

#ifdef ENABLE_CRASH_POINTS
void crash_point(const char *name)
{
	const char *wanted = getenv("SEMLOCK_CRASH");
	size_t length = strlen(name);

	if (wanted == NULL || strncmp(wanted, name, length) != 0 || wanted[length] != ':')
		return;
	raise(strcmp(wanted + length + 1, "kill") == 0 ? SIGKILL : SIGSTOP);
}
#else
typedef int crash_points_are_compiled_out;
#endif
