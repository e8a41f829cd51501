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

/* CLOCK_BOOTTIME, now: unlike CLOCK_MONOTONIC, it also runs during suspend, as leases do. */
int64_t clock_boottime(void);

/* CLOCK_REALTIME, now: nanoseconds after 1970. */
int64_t clock_realtime(void);

/* Parse TEXT into *DURATION: a number of seconds, perhaps with a fraction, exponent and suffix
 * ("90", ".5", "1e1", "500ms", "2m", "1h", "1d").  Blanks and a sign may precede it.  A duration of
 * more than a century becomes a century.  Works in any locale, because semlock never calls
 * setlocale(3).  Returns false, and leaves *DURATION alone, if TEXT is anything else. */
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
	/* this thread's processor time when effort_exceeds() first read it, in ns; -1: not read
	 * yet, because that costs a system call */
	int64_t used;
};

/* The effort that begins now.  Makes no system call where clock_now() needs none. */
struct effort effort_begins(void);

/* Has the thread used more than LIMIT ns of processor time?  Until LIMIT ns have passed by the
 * clock, the answer is no, without a system call.  The first call after that starts the
 * measurement, and still returns false. */
bool effort_exceeds(struct effort *effort, int64_t limit);

/* How much a look may cost, if it only informs somebody. */
struct allowance {
	int64_t budget; /* ns of processor time; 0: no limit */
	struct deadline deadline;
	struct effort effort;
};

/* The allowance that begins now. */
struct allowance allowance_begins(int64_t budget, struct deadline deadline);

/* Is the budget spent, or has the deadline passed? */
bool allowance_spent(struct allowance *limit);

/* The time left, in ns: 0 if DEADLINE has passed, INT64_MAX if it never comes. */
int64_t deadline_left(const struct deadline *deadline);

/* The time left for poll(2), in ms, rounded up: -1 if DEADLINE never comes. */
int deadline_poll_time(const struct deadline *deadline);

#endif
