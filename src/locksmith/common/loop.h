/* SPDX-License-Identifier: MIT */
/* locksmith/common/loop.h - sleeping until a moment on clock_boottime()'s clock, by which leases
 * run, and reading semlock's lines meanwhile. */
#ifndef SEMLOCK_LOCKSMITH_COMMON_LOOP_H
#define SEMLOCK_LOCKSMITH_COMMON_LOOP_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#include "sys/deadline.h"

#define NEVER INT64_MAX

/* A hundred days: the longest time that an option takes. */
#define LONGEST_SECONDS 8640000

/* The earlier of two moments, or the shorter of two times. */
static inline int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The later of two moments, or the longer of two times. */
static inline int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Return a random time from 3/4 to 5/4 of NS, so that the requests of several pollers spread. */
int64_t spread(int64_t ns);

/* Fill SIZE bytes, at most 256, at INTO with random bytes of the kernel; abort if there are
 * none. */
void random_bytes(void *into, size_t size);

/* Read a duration, as duration_parse() does, of at most LONGEST_SECONDS, into *NS.  Returns 0, or
 * -1: TEXT is no such duration. */
int bounded_duration(const char *text, int64_t *ns);

/* Fill OWN with two descriptors for poll(2): one for semlock's lines, and a timer that expires at
 * the moment UNTIL, even if the machine is suspended meanwhile (-1: no timer can be made).  Returns
 * the timeout for poll(2) in ms: 0 if UNTIL has come; -1, which is forever, if the timer will wake
 * poll(2); else a second at most, because poll(2) does not count the time of a suspend. */
int loop_prepare(struct pollfd own[2], int64_t until);

/* Sleep until one of the COUNT (at most 4) descriptors FDS is ready, a line comes from semlock, or
 * the moment UNTIL has come; where there is no timerfd_create(2), a second at most.  Fill
 * revents. */
void loop_turn(struct pollfd *fds, nfds_t count, int64_t until);

/* Wait until the moment UNTIL, or until protocol_released(). */
void loop_wait(int64_t until);

/* Wait until the moment UNTIL, even after protocol_released(). */
void loop_pause(int64_t until);

#endif
