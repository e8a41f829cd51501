/* The kernel lets a caller sleep on one lock, not on whichever of N comes free first.  So the head of the queue
 * sleeps on each slot in turn, for some milliseconds, and tries all of them in between. */
#include <config.h>

#include <stdbool.h>

#include "lock/held_mode.h"
#include "lock/slots.h"
#include "sys/wakeup.h"

/* From the first sleep to the longest. */
#define FIRST_SLEEP MILLISECOND
#define LONGEST_SLEEP (10 * MILLISECOND)

static enum outcome try_slots(struct lock *lock, struct error *error)
{
	enum outcome outcome = BUSY;

	for (unsigned slot = 0; slot < lock->spec->slots && outcome == BUSY; slot++) {
		outcome = lock->spec->method->take_slot(lock, slot, TRY, error);
		if (outcome == TAKEN)
			lock->slot = (int)slot;
	}
	return outcome;
}

/* A caller's descriptor gets no second slot. */
enum outcome slots_try(struct lock *lock, struct error *error)
{
	if (lock->spec->name == NULL && (lock->slot = held_read(lock).slot) >= 0)
		return TAKEN;
	return try_slots(lock, error);
}

/* A caller's descriptor may carry the bytes of several slots, from an earlier lock of the range. */
void slots_drop(struct lock *lock)
{
	bool all = lock->spec->name == NULL && (lock->spec->method->can & CAN_RANGE) != 0;

	for (unsigned slot = 0; slot < lock->spec->slots; slot++)
		if (all || lock->slot == (int)slot)
			lock->spec->method->drop_slot(lock, slot);
	lock->slot = -1;
}

enum outcome slots_sleep(struct lock *lock, const struct wait_options *wait, struct error *error)
{
	enum outcome outcome = BUSY;
	int64_t most = FIRST_SLEEP, left;

	for (unsigned slot = 0; outcome == BUSY && deadline_left(&wait->deadline) > 0; slot = (slot + 1) % lock->spec->slots) {
		left = wait_left(lock, wait);
		if (wakeup_set(left < most ? left : most, error) != 0)
			return FAILED;
		outcome = lock->spec->method->take_slot(lock, slot, SLEEP, error);
		if (outcome == TAKEN)
			lock->slot = (int)slot;
		else if (outcome == BUSY)
			outcome = try_slots(lock, error);
		if (most < LONGEST_SLEEP)
			most *= 2;
	}
	wakeup_off();
	return outcome;
}
