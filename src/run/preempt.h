/* run/preempt.h - --replace and --toggle: ending the holder of a lock.
 *
 * A process is signalled through its pidfd alone, and only after it was seen, with that pidfd open, to hold
 * the lock: if its PID is another process's by then, the signal reaches none. */
#ifndef SEMLOCK_RUN_PREEMPT_H
#define SEMLOCK_RUN_PREEMPT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lock/lock.h"
#include "report/error.h"

struct preemption {
	int signal;         /* sent to the holder */
	int64_t kill_after; /* ns from SIGNAL to SIGKILL; 0: no SIGKILL */
	const struct wait_options *wait; /* the limit of the wait for a holder to signal, and its callback */
	void (*tell)(pid_t pid, const void *context); /* called once for each PID that was signalled */
	const void *context;
	bool stopped;       /* filled: a process has been signalled */
	bool done;          /* filled: the holders that --toggle signalled have released the lock */
};

/* Take LOCK before all waiters, ending its holder.  Returns TAKEN; BUSY: the deadline passed before a holder
 * was signalled, after which there is no deadline; FAILED with ERROR filled, as when the holder may not be
 * signalled or is an ancestor of this process. */
enum outcome replace_take(struct lock *lock, struct preemption *preemption, struct error *error);

/* Take LOCK if it is free.  If it is held, end its holder, wait until the lock is released, and return BUSY
 * with DONE set; BUSY without DONE: as above.
 * Each call either takes the lock or ends a holder: of two at the same moment, one undoes the other's work. */
enum outcome toggle_take(struct lock *lock, struct preemption *preemption, struct error *error);

#endif
