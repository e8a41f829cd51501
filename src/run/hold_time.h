/* SPDX-License-Identifier: MIT */
/* run/hold_time.h - how long a run has waited for its lock, and how long it has held it. */
#ifndef SEMLOCK_RUN_HOLD_TIME_H
#define SEMLOCK_RUN_HOLD_TIME_H

#include <stdint.h>

struct subreaper;

/* Moments in ns on clock_now()'s clock; 0: not yet, or not asked for. */
struct hold_time {
	int64_t began; /* semlock began */
	int64_t since; /* the lock is held */
	int64_t until; /* the lock is released */
};

/* semlock begins. */
void hold_time_begins(struct hold_time *time);

/* The lock is held from now on, if hold_time_begins() was called. */
void hold_time_holds(struct hold_time *time);

/* The lock is about to be released. */
void hold_time_ends(struct hold_time *time);

/* For how many ns semlock has waited: until the lock was held, or until now. */
int64_t hold_time_waited(const struct hold_time *time);

/* For how many ns the lock has been held: until it was released, or until now; 0: not at all. */
int64_t hold_time_held(const struct hold_time *time);

/* For --min-hold, after the command has ended, with all signals blocked: wait until the lock has
 * been held for DURATION ns, a signal asks semlock to end, the parent has ended
 * (--die-with-parent), or SUBREAPER has been killed. */
void hold_time_at_least(const struct hold_time *time, int64_t duration,
    const struct subreaper *subreaper);

#endif
