#include <config.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "caller.h"
#include "descriptor.h"
#include "pidfd.h"

struct caller caller_of(pid_t pid)
{
	struct caller caller = {.pid = pid, .process = pidfd_of(pid)};

	if (caller.process >= 0)
		caller.process = descriptor_above_standard(caller.process);
	return caller;
}

/* The pidfd first, then once more who our parent is: so it is not another's of that number. */
struct caller caller_find(void)
{
	struct caller caller = caller_of(getppid());

	if (getppid() != caller.pid)
		caller.pid = -1;
	return caller;
}

bool caller_lives(const struct caller *caller)
{
	struct pollfd end = {caller->process, POLLIN, 0};

	if (caller->process >= 0)
		return poll(&end, 1, 0) <= 0; /* not to be asked: then it is not known to have ended */
	return caller->pid == 0 ||
	       (caller->pid > 0 && (kill(caller->pid, 0) == 0 || errno != ESRCH));
}
