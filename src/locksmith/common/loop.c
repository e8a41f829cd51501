/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/common/loop.h"

#include "locksmith/common/moment.h"
#include "locksmith/common/protocol.h"

#include <string.h>
#include <sys/timerfd.h>

enum { MOST_FDS = 4 };

/* Sets a timer that also runs while the machine is suspended, which the timeout of poll(2) does not; so nothing wakes up
   to look at the clock. The timer's descriptor, or -1: there is none. */
static int timer_at(int64_t until)
{
	static int timer = -1;
	static bool tried;
	struct itimerspec when = {0}; /* never */

	if (!tried)
		timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
	tried = true;
	if (until != NEVER)
		when.it_value = (struct timespec){(time_t)(until / SECOND), (long)(until % SECOND)};
	return timer >= 0 && timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL) == 0 ? timer : -1;
}

int loop_milliseconds(int64_t until)
{
	int64_t ms = (until - clock_boottime() + MILLISECOND - 1) / MILLISECOND;

	return ms < 0 ? 0 : ms > 1000 ? 1000 : (int)ms;
}

void loop_turn(struct pollfd *fds, nfds_t count, int64_t until)
{
	struct pollfd all[MOST_FDS + 2];
	int timer = timer_at(until), milliseconds = loop_milliseconds(until);

	if (count > 0)
		memcpy(all, fds, count * sizeof *fds);
	/* poll(2) ignores a descriptor of -1. */
	all[count] = (struct pollfd){protocol_fd(), POLLIN, 0};
	all[count + 1] = (struct pollfd){timer, POLLIN, 0};
	if (poll(all, count + 2, timer >= 0 && milliseconds > 0 ? -1 : milliseconds) < 0)
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
