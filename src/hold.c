#include <config.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "caller.h"
#include "hold.h"

#define LOOK_EVERY 1000 /* ms, where there is no pidfd */

/* Returns false at the end of input. */
static bool read_some(void)
{
	char bytes[512];
	ssize_t got = read(STDIN_FILENO, bytes, sizeof bytes);

	return got > 0 || (got < 0 && errno == EINTR);
}

/* Others may have the other end of our input open, and never close it: the caller's end is an end. */
void hold_until_end(void *context)
{
	const struct caller *caller = context;
	struct pollfd sources[] = {{STDIN_FILENO, POLLIN, 0}, {caller->process, POLLIN, 0}};

	if (write(STDOUT_FILENO, "OK\n", 3) != 3)
		_exit(EXIT_FAILURE);
	do {
		sources[0].revents = 0;
		poll(sources, 2, caller->process < 0 ? LOOK_EVERY : -1);
	} while (caller_lives(caller) && (sources[0].revents == 0 || read_some()));
	_exit(EXIT_SUCCESS);
}
