/* run/preempt.h - stopping whoever holds a lock: --replace and --toggle.
 *
 * A process is signalled only through a descriptor of that very process (pidfd), and only
 * after a look at it has shown that it has the lock: if its number is somebody else's by
 * then, the signal goes nowhere. */
#ifndef SEMLOCK_RUN_PREEMPT_H
#define SEMLOCK_RUN_PREEMPT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lock/take.h"
#include "report/error.h"

struct preemption {
	int signal;               /* what the holder gets, SIGTERM say ... */
	int64_t kill_after;       /* ... and SIGKILL so many ns after that; 0: never */
	const struct wait_options *wait_options; /* how long all this may take, and whom to tell */
	void (*tell)(pid_t pid, const void *context); /* called when PID has been signalled, once for each */
	const void *context;
	bool stopped;             /* out: somebody has been signalled */
	bool done;                /* out: a toggle has seen to it that who was stopped lets go */
};

/* Take LOCK before all who wait for it, stopping its holder.  TAKEN, BUSY (the deadline passed before
 * a holder was signalled; after that there is none), or FAILED with ERROR filled, as when the holder may
 * not be signalled, or is our own caller. */
enum outcome replace_take(struct lock *lock, struct preemption *preemption, struct error *error);

/* Take LOCK if it is free.  If it is held, stop who holds it, wait until it has let go, and
 * come back with nothing taken: BUSY with DONE set.  BUSY without: as above.
 * Every call either takes the lock or stops one holder, so that of two at the same moment
 * one undoes what the other does. */
enum outcome toggle_take(struct lock *lock, struct preemption *preemption, struct error *error);

#endif
