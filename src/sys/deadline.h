/* sys/deadline.h - durations, and when to stop waiting, on a clock nobody can set.
 * All times are nanoseconds. */
#ifndef SEMLOCK_SYS_DEADLINE_H
#define SEMLOCK_SYS_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

#define MILLISECOND INT64_C(1000000)
#define SECOND INT64_C(1000000000)

struct deadline {
	bool never;
	int64_t at; /* on clock_now()'s clock */
};

/* CLOCK_MONOTONIC, now. */
int64_t clock_now(void);

/* The clock that leases are counted on, which goes on while the machine sleeps: CLOCK_BOOTTIME,
 * or CLOCK_MONOTONIC where there is none. */
int64_t clock_boottime(void);

/* Read TEXT, seconds with an optional fraction, exponent and suffix ("90", ".5",
 * "1e1", "500ms", "2m", "1h", "1d"), into *DURATION, whatever the locale.  Returns
 * false, and leaves *DURATION alone, when TEXT is anything else.  A sign is read;
 * what is longer than a century is a century. */
bool duration_parse(const char *text, int64_t *duration);

/* The deadline DURATION from now. */
struct deadline deadline_after(int64_t duration);

/* The deadline that never comes. */
struct deadline deadline_never(void);

/* The time left: 0 when it has passed, INT64_MAX when it never comes. */
int64_t deadline_left(const struct deadline *deadline);

#endif
