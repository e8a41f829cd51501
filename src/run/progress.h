/* run/progress.h - the line shown while semlock waits.
 *
 * After a second of waiting on a terminal, a line shows the holder, this process's place in the queue,
 * the time waited and the time left.  It is redrawn in place, and erased at the end.  With --verbose, there
 * is an ordinary message instead, also where standard error is no terminal.
 *
 * The waiter draws it, between two sleeps: among waiters that are not in semlock's queue, that costs it its place. */
#ifndef SEMLOCK_RUN_PROGRESS_H
#define SEMLOCK_RUN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "sys/deadline.h"
#include "lock/lock.h"

struct progress {
	bool verbose, live;       /* asked for: a message; the line that is redrawn */
	struct deadline deadline; /* of the wait */
	int64_t began;            /* ns on clock_now()'s clock; 0: not yet */
	int64_t due;              /* when to draw again; INT64_MAX: never */
};

/* The wait begins, or goes on for another lock. */
void progress_begins(struct progress *progress);

/* Draw the line, if that is due.  Returns in how many ns it will be, INT64_MAX: never. */
int64_t progress_tick(struct progress *progress, const struct lock *lock);

/* The wait is over: erase the line.  Does nothing if there is none. */
void progress_ends(struct progress *progress);

#endif
