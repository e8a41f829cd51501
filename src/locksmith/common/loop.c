/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "sys/random.h"

enum { MOST_FDS = 4 };

int loop_prepare(struct pollfd own[2], int64_t until)
{
	static int timer = -1;
	static bool tried;
	int64_t left = (until - clock_boottime() + MILLISECOND - 1) / MILLISECOND;
	struct itimerspec when = {.it_value = {0}}; /* never */

	if (!tried)
		timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
	tried = true;
	if (until != NEVER)
		when.it_value = (struct timespec){(time_t)(until / SECOND), (long)(until % SECOND)};
	own[0] = (struct pollfd){protocol_fd(), POLLIN, 0};
	own[1] = (struct pollfd){timer, POLLIN, 0};
	if (left <= 0 ||
	    (timer >= 0 && timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL) == 0))
		return left <= 0 ? 0 : -1;
	return left < 1000 ? (int)left : 1000;
}

void loop_turn(struct pollfd *fds, nfds_t count, int64_t until)
{
	struct pollfd all[MOST_FDS + 2]; /* poll(2) ignores a descriptor of -1 */
	int milliseconds = loop_prepare(all + count, until);

	if (count > 0)
		memcpy(all, fds, count * sizeof *fds);
	if (poll(all, count + 2, milliseconds) < 0) {
		protocol_poll_failed();
		memset(all, 0, sizeof all); /* nothing is ready */
	}
	for (nfds_t i = 0; i < count; i++)
		fds[i].revents = all[i].revents;
	protocol_pump();
}

void loop_wait(int64_t until)
{
	while (clock_boottime() < until && !protocol_released())
		loop_turn(NULL, 0, until);
}

void loop_pause(int64_t until)
{
	while (clock_boottime() < until)
		loop_turn(NULL, 0, until);
}

int64_t spread(int64_t ns)
{
	uint32_t random_bits;

	random_bytes(&random_bits, sizeof random_bits);
	return ns - ns / 4 + (int64_t)((double)ns / 2 * ((double)random_bits / UINT32_MAX));
}

void random_bytes(void *into, size_t size)
{
	if (random_fill(into, size) != 0)
		abort(); /* a nonce that is not random could match another owner's */
}

int bounded_duration(const char *text, int64_t *ns)
{
	return duration_parse(text, ns) && *ns >= 0 && *ns <= LONGEST_SECONDS * SECOND ? 0 : -1;
}
