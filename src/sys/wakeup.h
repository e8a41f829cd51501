/* sys/wakeup.h - waking up from a lock call that sleeps in the kernel.
 *
 * A one-shot timer can fire just before the call goes to sleep, and then the
 * call sleeps for ever.  So ours fires again, after 1, 2, 4 and at last every 64
 * milliseconds, until it is turned off: there is no wake-up to lose, only one to
 * be a little late.
 *
 * It has a signal of its own where the system can: SIGALRM may come to us
 * blocked, ignored, or under way from "alarm(5), exec semlock", and stays
 * whatever the caller made of it. */
#ifndef SEMLOCK_SYS_WAKEUP_H
#define SEMLOCK_SYS_WAKEUP_H

#include <stdint.h>

#include "report/error.h"

/* From AFTER nanoseconds on, any call that sleeps returns EINTR, until
 * alarm_off(); a second alarm_set() moves the first.  Returns 0, or -1 with ERROR
 * filled when the system has no timer left. */
int alarm_set(int64_t after, struct error *error);

/* Let alarm_signal(), sent by whoever, interrupt calls that sleep, until alarm_off(). */
void alarm_listen(void);
int alarm_signal(void);

/* No more interruptions; the signal's disposition and mask are the caller's again. */
void alarm_off(void);

#endif
