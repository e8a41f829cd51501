/* SPDX-License-Identifier: MIT */
/* preempt/preempt.h - --replace and --toggle: ending the holder of a lock.
 *
 * A process is signalled through its pidfd alone, and only after it was seen, with that pidfd
 * open, to hold the lock: if its PID is another process's by then, the signal reaches none. */
#ifndef SEMLOCK_PREEMPT_PREEMPT_H
#define SEMLOCK_PREEMPT_PREEMPT_H

#include "cli/request.h"
#include "lock/lock.h"

/* What is known of the holder of a lock, from one look at it to the next. */
struct preemption;

/* With REQUEST's --replace or --toggle.  DEADLINE and TRY_ONCE limit the wait for a holder to
 * signal; once one has been signalled, it must not have been ended in vain, and there is no
 * limit.  NULL with ERROR filled: no memory. */
struct preemption *preempt_begin(const struct request *request, const struct deadline *deadline,
    bool try_once, struct error *error);

/* LOCK is busy.  Look for its holder, prove that it holds the lock, signal it, and let it end.
 *
 * AGAIN: LOCK may be free now; before the next call, sleep for *NAP ns in the kernel's queue for
 * it, which would else be free while the next look lasts.  0: ask for it, and do not sleep: a piece
 * of a look has been made, and the next call goes on with it.  BUSY: the time is up before
 * a holder was signalled, after which there is no limit; LOCK->busy says why.  FAILED with ERROR
 * filled, as when the holder may not be signalled or is an ancestor of this process.
 *
 * With --toggle LOCK is not open: a holder that was ended is waited for, and then it is BUSY, with
 * LOCK->busy BUSY_TOGGLED.  Each run either takes the lock or ends a holder: of two at the same
 * moment, one undoes the other's work. */
enum outcome preempt_stop(struct preemption *state, struct lock *lock, int64_t *nap,
    struct error *error);

/* Forget what is known.  No process is signalled any more. */
void preempt_end(struct preemption *state);

#endif
