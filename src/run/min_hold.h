/* run/min_hold.h - how long the lock has been held: for --status-fd and --min-hold. */
#ifndef SEMLOCK_RUN_MIN_HOLD_H
#define SEMLOCK_RUN_MIN_HOLD_H

#include <stdint.h>

/* The lock is held from now on. */
void held_begins(void);

/* For how long the lock has been held, in ns; 0 before held_begins(). */
int64_t held_time(void);

/* The command has ended, and all signals are blocked: wait until the lock has been held for DURATION ns,
 * or a signal asks semlock to end. */
void held_at_least(int64_t duration);

#endif
