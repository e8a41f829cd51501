/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "lock/attempt.h"
#include "lock/conversion.h"
#include "lock/held_mode.h"

enum outcome conversion_again(struct lock *lock, struct error *error)
{
	const struct held held = held_read(lock);

	if (lock->spec->slots > 0)
		return held.slot < 0 ? BUSY : attempt_try(lock, error);
	if (held.mode == HELD_EXCLUSIVE || (held.mode == HELD_SHARED && lock->spec->mode == SHARED))
		return lock->spec->method->take(lock, TRY, error);
	return BUSY;
}

/* Does the descriptor keep its old lock until it gets LOCK?  A record lock it keeps: one call
 * changes its mode.  In the queue, the waiters before us would wait for that lock, and we for them.
 * Not with --replace, which ends the holders of the lock: we would be one of them. */
static bool converts_in_place(const struct lock *lock, const struct held *held,
    const struct wait_options *wait)
{
	return lock_can(lock, CAN_RANGE) && lock->spec->slots == 0 && held->mode != HELD_NONE &&
	       wait->preempt == PREEMPT_NOT;
}

enum outcome conversion_begin(struct lock *lock, const struct wait_options *wait,
    struct error *error)
{
	const struct held held = held_read(lock);
	enum outcome outcome;

	if (lock->spec->slots > 0 || held.mode == HELD_NONE)
		return BUSY;
	outcome = conversion_again(lock, error);
	if (outcome == BUSY && !converts_in_place(lock, &held, wait))
		lock->spec->method->drop(lock, error);
	return outcome;
}

bool conversion_skips_queue(const struct lock *lock, const struct wait_options *wait)
{
	const struct held held = held_read(lock);

	return wait->past_queue || held.more || converts_in_place(lock, &held, wait);
}
