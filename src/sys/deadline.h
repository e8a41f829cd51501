/* SPDX-License-Identifier: MIT */
/* sys/deadline.h - durations and deadlines, on a clock that nobody can set.  All times are
 * nanoseconds. */
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

/* CLOCK_BOOTTIME, now: unlike CLOCK_MONOTONIC it goes on during suspend, as leases do. */
int64_t clock_boottime(void);

/* CLOCK_REALTIME, now: nanoseconds after 1970. */
int64_t clock_realtime(void);

/* Read TEXT, seconds with an optional fraction, exponent and suffix ("90", ".5", "1e1", "500ms",
 * "2m", "1h", "1d"), into *DURATION; in any locale, because semlock never calls setlocale(3).
 * Returns false, and leaves *DURATION alone, if TEXT is anything else.  Blanks and a sign may
 * precede it; more than a century becomes a century. */
bool duration_parse(const char *text, int64_t *duration);

/* DURATION from now. */
struct deadline deadline_after(int64_t duration);
struct deadline deadline_never(void);

/* The earlier of the two. */
struct deadline deadline_earlier(struct deadline one, struct deadline other);

/* The processor time that this thread has used, in ns. */
int64_t clock_processor(void);

/* The processor time that this thread uses from a certain moment on.  Unlike the clock, it does not
 * run while other processes keep the machine busy. */
struct effort {
	int64_t began; /* ns on clock_now()'s clock */
	/* ns of processor time at some moment after BEGAN; -1: not read yet, because that costs a
	 * system call */
	int64_t used;
};

/* The effort that begins now.  Makes no system call where clock_now() needs none. */
struct effort effort_begins(void);

/* Is it more than LIMIT ns?  It is measured from the first call that comes when LIMIT ns have
 * passed by the clock; that call returns false. */
bool effort_exceeds(struct effort *effort, int64_t limit);

/* How much a look may cost, if it only informs somebody. */
struct allowance {
	int64_t budget; /* ns of processor time; 0: any */
	struct deadline deadline;
	struct effort effort;
};

/* The allowance that begins now. */
struct allowance allowance_begins(int64_t budget, struct deadline deadline);

/* Is the budget spent, or the deadline over? */
bool allowance_spent(struct allowance *limit);

/* The time left: 0 when it has passed, INT64_MAX when it never comes. */
int64_t deadline_left(const struct deadline *deadline);

/* The same for poll(2): in ms, rounded up; -1 when it never comes. */
int deadline_poll_time(const struct deadline *deadline);

#endif
