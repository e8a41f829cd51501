/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/common/loop.h"

#include "locksmith/common/clock.h"
#include "locksmith/common/protocol.h"

#include <string.h>

enum { MOST_FDS = 4 };

int loop_milliseconds(int64_t until)
{
	int64_t ms = (until - clock_boottime() + NS_PER_MS - 1) / NS_PER_MS;

	return ms < 0 ? 0 : ms > 1000 ? 1000 : (int)ms;
}

void loop_turn(struct pollfd *fds, nfds_t count, int64_t until)
{
	struct pollfd all[MOST_FDS + 1];

	if (count > 0)
		memcpy(all, fds, count * sizeof *fds);
	/* poll(2) ignores a descriptor of -1. */
	all[count] = (struct pollfd){protocol_fd(), POLLIN, 0};
	if (poll(all, count + 1, loop_milliseconds(until)) < 0)
		memset(all, 0, sizeof all); /* EINTR: nothing is ready */
	for (nfds_t i = 0; i < count; i++)
		fds[i].revents = all[i].revents;
	protocol_pump();
}

void loop_wait(int64_t until)
{
	while (clock_boottime() < until && !protocol_released())
		loop_turn(NULL, 0, until);
}

bool loop_wait_for_start(int64_t until)
{
	while (clock_boottime() < until && !protocol_started() && !protocol_released())
		loop_turn(NULL, 0, until);
	return protocol_started();
}

void loop_pause(int64_t until)
{
	while (clock_boottime() < until)
		loop_turn(NULL, 0, until);
}
