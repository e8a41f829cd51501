/* run/progress.h - nobody waits in the dark.
 *
 * After a second of waiting on a terminal there is one line that says who holds the lock, our
 * place in the queue, how long we have waited, and how much time is left.  It is redrawn in
 * place, and gone without a trace at the end.  With --verbose, there is instead, wherever
 * standard error goes, one line of the ordinary kind, which stays.
 *
 * All this is done by a thread: whoever left the lock call to draw would lose its place. */
#ifndef SEMLOCK_RUN_PROGRESS_H
#define SEMLOCK_RUN_PROGRESS_H

#include <signal.h>
#include <stdbool.h>

#include "sys/deadline.h"
#include "lock/lock.h"

struct progress {
	bool verbose, live;       /* what is wanted: one line, the live line */
	struct deadline deadline; /* of the wait */
};

/* LOCK has turned out to be busy, and we are about to wait for it.  CONTEXT is a struct
 * progress, which has to last until progress_end().  May be called again for another lock.
 * Where there can be no thread there is no line. */
void progress_waits(const struct lock *lock, void *context);

/* The signals that this thread has blocked for the line's sake, and that whoever is started
 * meanwhile must not inherit so; NULL: none. */
const sigset_t *progress_blocks(void);

/* The wait is over, one way or the other: erase the line.  Does nothing when there was none. */
void progress_end(void);

#endif
