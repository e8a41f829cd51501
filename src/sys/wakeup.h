/* SPDX-License-Identifier: MIT */
/* sys/wakeup.h - a timer that wakes a lock call which sleeps in the kernel.
 *
 * A one-shot timer may fire just before the call goes to sleep, which then sleeps for ever.  This timer
 * fires again, after 1, 2, 4 and at last every 64 ms, until it is turned off.
 *
 * Its signal is SIGIO: a descriptor with O_ASYNC wakes the call as well.  The caller may have SIGALRM blocked, ignored
 * or pending ("alarm(5), exec semlock"), and the command inherits that unchanged. */
#ifndef SEMLOCK_SYS_WAKEUP_H
#define SEMLOCK_SYS_WAKEUP_H

#include <stdint.h>

#include "report/error.h"

/* From AFTER nanoseconds on, a call that sleeps fails with EINTR, until wakeup_off(); a second wakeup_set()
 * moves the first.  Returns 0, or -1 with ERROR filled: no timer is left. */
int wakeup_set(int64_t after, struct error *error);

/* Stop the timer, and restore the signal's disposition and the mask. */
void wakeup_off(void);

#endif
