/* SPDX-License-Identifier: MIT */
/* run/progress.h - what is shown while semlock waits.
 *
 * On a terminal, a line says who holds the lock since when, this process's place in the queue, and
 * until when it waits. Its times are absolute, so that nobody has to wake up for it: it is drawn
 * when the wait begins, and again, in place, when the waiter wakes up for another reason and finds
 * that the queue has moved or the holder changed.  It is erased at the end.  With --verbose, there
 * are ordinary messages instead, also where standard error is no terminal: at once, after 10
 * seconds, after 1 and 5 minutes, and then every 10. */
#ifndef SEMLOCK_RUN_PROGRESS_H
#define SEMLOCK_RUN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "sys/deadline.h"
#include "lock/lock.h"

struct progress {
	bool verbose, live;       /* asked for: a message; the line */
	bool notes_place;         /* for --log */
	struct deadline deadline; /* of the wait */
	bool begun;
	int64_t since; /* when the wait began, on clock_now()'s clock */
	int64_t until; /* DEADLINE, in ns after 1970 */
	int64_t delay; /* ns until the first look */
	int64_t due;   /* when to look again, on clock_now()'s clock; INT64_MAX: never */
};

/* The wait begins, or goes on for another lock. */
void progress_begins(struct progress *progress);

/* The wait for LOCK is about to sleep: draw the line, if it has changed.  Returns how many ns it
 * may sleep without another look, INT64_MAX: as long as it likes. */
int64_t progress_tick(struct progress *progress, const struct lock *lock);

/* The wait is over: erase the line.  Does nothing if there is none. */
void progress_ends(struct progress *progress);

#endif
