/* run/progress.h - the line shown while semlock waits.
 *
 * After a second of waiting on a terminal, a line shows the holder, this process's place in the queue,
 * the time waited and the time left.  It is redrawn in place, and erased at the end.  With --verbose, there
 * is an ordinary message instead, also where standard error is no terminal.
 *
 * A thread draws the line: leaving the lock call to draw would lose the place among the waiters. */
#ifndef SEMLOCK_RUN_PROGRESS_H
#define SEMLOCK_RUN_PROGRESS_H

#include <signal.h>
#include <stdbool.h>

#include "sys/deadline.h"
#include "lock/lock.h"

struct progress {
	bool verbose, live;       /* asked for: a message; the line that is redrawn */
	struct deadline deadline; /* of the wait */
};

/* LOCK is busy, and the wait for it begins.  CONTEXT: a struct progress, which has to last until
 * progress_end().  May be called again for another lock.  If no thread can be started there is no line. */
void progress_waits(const struct lock *lock, void *context);

/* The signal mask that the caller of progress_waits() had, for a process that is started meanwhile: for the
 * line's sake, more signals are blocked now.  NULL: there is no line. */
const sigset_t *progress_caller_mask(void);

/* The wait is over: end the thread, erase the line.  Does nothing if there is none. */
void progress_end(void);

#endif
