/* SPDX-License-Identifier: MIT */
/* lock/conversion.h - a caller's descriptor that carries a lock already: the queue for that lock
 * would wait for us, and we for the queue. */
#ifndef SEMLOCK_LOCK_CONVERSION_H
#define SEMLOCK_LOCK_CONVERSION_H

#include "lock/lock.h"

/* Take LOCK before all waiters if its descriptor carries it already, or more than it; else BUSY. */
enum outcome conversion_again(struct lock *lock, struct error *error);

/* The same, for a caller with a ticket, but release what the descriptor carries where that is in
 * the way.  Taking the same lock, or a weaker one, succeeds at once.  For a stronger one, a flock
 * is dropped, and then queued for: the kernel's own conversion drops it first, too. */
enum outcome conversion_begin(struct lock *lock, const struct wait_options *wait,
    struct error *error);

/* Does LOCK skip the queue?  If its descriptor holds another lock, or keeps a part of this one, the
 * waiters for that would wait for us while we queue behind them.  Call it before
 * conversion_begin(). */
bool conversion_skips_queue(const struct lock *lock, const struct wait_options *wait);

#endif
