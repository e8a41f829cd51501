/* SPDX-License-Identifier: MIT */
/* locksmith/common/loop.h - sleep, and read semlock's lines. */
#ifndef SEMLOCK_LOCKSMITH_COMMON_LOOP_H
#define SEMLOCK_LOCKSMITH_COMMON_LOOP_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

/* Fills in what poll(2) is to look at beside other descriptors: semlock's lines, and a timer for that moment, which also
   runs while the machine is suspended; -1: there is none.  Returns the timeout in ms: -1, for ever, if the timer wakes;
   else a second at most, because poll(2) does not count the time of a suspend. */
int loop_prepare(struct pollfd own[2], int64_t until);

/* Sleeps until one of the COUNT (at most 4) descriptors FDS is ready, a line comes from semlock, or that
   moment has come; where there is no timerfd_create(2), a second at most.  Fills in revents. */
void loop_turn(struct pollfd *fds, nfds_t count, int64_t until);

/* Waits until that moment, or until protocol_released(). */
void loop_wait(int64_t until);

/* After OK, until the last moment for a renewal: waits for START.  False: it did not come, and the lock is to
   lapse, or to be released. */
bool loop_wait_for_start(int64_t until);

/* Waits until that moment, also after protocol_released(). */
void loop_pause(int64_t until);

#endif
