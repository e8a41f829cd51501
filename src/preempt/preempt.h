/* SPDX-License-Identifier: MIT */
/* preempt/preempt.h - --replace and --toggle: ending the holder of a lock.
 *
 * A process is signalled through its pidfd alone, and only after it was seen, with that pidfd open,
 * to hold the lock: if its PID is another process's by then, the signal reaches none. */
#ifndef SEMLOCK_PREEMPT_PREEMPT_H
#define SEMLOCK_PREEMPT_PREEMPT_H

#include "cli/request.h"
#include "lock/take.h"

/* With --replace: take LOCK before all waiters, ending its holder.  With --toggle: take LOCK if it
 * is free; if it is held, end its holder, wait until the lock is released, and return BUSY, with
 * LOCK->busy BUSY_TOGGLED.  (Each call either takes the lock or ends a holder: of two at the same
 * moment, one undoes the other's work.)  WAIT: the limit of the wait for a holder to signal, and
 * its callback.  Returns TAKEN; BUSY: the deadline passed before a holder was signalled, after
 * which there is no deadline; FAILED with ERROR filled, as when the holder may not be signalled or
 * is an ancestor of this process. */
enum outcome preempt_take(const struct request *request, struct lock *lock,
    const struct wait_options *wait, struct error *error);

#endif
