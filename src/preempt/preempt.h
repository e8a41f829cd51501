/* SPDX-License-Identifier: MIT */
/* preempt/preempt.h - --replace and --toggle: end the holder of a lock.
 *
 * A process is signalled only through its pidfd, and only after it was seen to hold the lock while
 * that pidfd was open.  If its PID has been reused since, the signal reaches no process. */
#ifndef SEMLOCK_PREEMPT_PREEMPT_H
#define SEMLOCK_PREEMPT_PREEMPT_H

#include "cli/request.h"
#include "lock/lock.h"

/* What is known of a lock's holder from one look to the next. */
struct preemption;

/* Begin REQUEST's --replace or --toggle.  DEADLINE and TRY_ONCE limit the wait for a holder to
 * signal.  Once a holder has been signalled there is no limit: otherwise it might have been ended
 * in vain.  Returns NULL with ERROR filled if there is no memory. */
struct preemption *preempt_begin(const struct request *request, const struct deadline *deadline,
    bool try_once, struct error *error);

/* LOCK is busy.  Look for its holder, prove that it holds the lock, signal it, and let it end.
 * Returns:
 *
 * AGAIN: LOCK may be free now: try it, then call this again.  While you try, sleep for *NAP ns at
 * most in the kernel's queue for LOCK, so that LOCK is taken as soon as it is released.  If *NAP is
 * 0, try without sleeping: either only a piece of a look has been made, and the next call continues
 * it; or the kernel has no queue for LOCK, and this call has slept.
 *
 * BUSY: the time was up before a holder was signalled (after that there is no limit).  LOCK->busy
 * says why.
 *
 * FAILED, with ERROR filled: the holder may not be signalled, or is an ancestor of this process,
 * for instance.
 *
 * With --toggle, LOCK is not open.  After a holder was signalled, this call waits for the holder's
 * end, and returns BUSY, with LOCK->busy BUSY_TOGGLED.  Each run either takes the lock or ends a
 * holder: if two run at once, one undoes the other's work. */
enum outcome preempt_stop(struct preemption *state, struct lock *lock, int64_t *nap,
    struct error *error);

/* Forget what is known, and free STATE.  From now on, no process is signalled. */
void preempt_end(struct preemption *state);

#endif
