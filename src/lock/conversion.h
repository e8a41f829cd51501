/* SPDX-License-Identifier: MIT */
/* lock/conversion.h - a lock that the caller's descriptor carries already.  If we queued for it,
 * the waiters before us would wait for us, and we for them. */
#ifndef SEMLOCK_LOCK_CONVERSION_H
#define SEMLOCK_LOCK_CONVERSION_H

#include "lock/lock.h"

/* Take LOCK before all waiters if its descriptor carries it already, or more than it; else BUSY. */
enum outcome conversion_again(struct lock *lock, struct error *error);

/* The same, when we have a ticket and the wait begins.  If the descriptor carries LOCK or a
 * stronger lock, this succeeds at once.  If it carries a weaker lock, this returns BUSY, and the
 * caller queues for LOCK; a record lock stays, but a flock (with --replace, also a record lock) is
 * released first.  The kernel's own conversion of a flock releases it first, too. */
enum outcome conversion_begin(struct lock *lock, const struct wait_options *wait,
    struct error *error);

/* Must LOCK skip the queue?  If its descriptor keeps another lock, or a part of this one, the
 * waiters for that would wait for us while we wait behind them.  Call this before
 * conversion_begin(), which may release a lock. */
bool conversion_skips_queue(const struct lock *lock, const struct wait_options *wait);

#endif
