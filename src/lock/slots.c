/* SPDX-License-Identifier: MIT */
/* The kernel lets a process sleep on one lock, not on the first of N that becomes free.  So the
 * head of the queue sleeps on one slot.  inotify wakes it when a process closes a descriptor of the
 * lock's file, as a holder does when it ends.  Then it tries all slots. */
#include <config.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "lock/held_mode.h"
#include "lock/slots.h"
#include "sys/files.h"
#include "sys/memory.h"
#include "sys/signals.h"

/* An inotify descriptor, or -1.  It stays open to the end: the kernel takes up to twenty
 * milliseconds to close it. */
static int closes = -1;

bool slots_has(const struct lock *lock, unsigned slot)
{
	return lock->kernel.slots.count > 0 &&
	       (lock->kernel.slots.bits[slot / 8] >> slot % 8 & 1) != 0;
}

static size_t bits_size(const struct lock *lock)
{
	return (lock->spec->slots + 7) / 8;
}

static void note_held(struct lock *lock, unsigned slot)
{
	if (lock->kernel.slots.count++ == 0)
		memset(lock->kernel.slots.bits, 0, bits_size(lock));
	lock->kernel.slots.bits[slot / 8] |= (unsigned char)(1u << slot % 8);
	if (lock->slot < 0 || lock->slot > (int)slot)
		lock->slot = (int)slot;
}

bool slots_collects(const struct lock *lock)
{
	return lock->spec->take > 1;
}

/* Take as many free slots as we still need. */
static enum outcome try_slots(struct lock *lock, struct error *error)
{
	const unsigned wanted = slots_collects(lock) ? lock->spec->take : 1;
	enum outcome outcome;

	if (lock->kernel.slots.bits == NULL &&
	    (lock->kernel.slots.bits = memory_lasting(bits_size(lock))) == NULL)
		return error_set(error, ERROR_SYSTEM, "no memory for %u slots", lock->spec->slots);
	for (unsigned slot = 0; slot < lock->spec->slots && lock->kernel.slots.count < wanted;
	     slot++) {
		if (slots_has(lock, slot))
			continue;
		outcome = lock->spec->method->take_slot(lock, slot, TRY, error);
		if (outcome == TAKEN)
			note_held(lock, slot);
		else if (outcome != BUSY)
			return outcome;
	}
	return lock->kernel.slots.count == wanted ? TAKEN : BUSY;
}

/* A caller's descriptor that holds a slot gets no second one.  With --take, take as many as asked
 * for, or none. */
enum outcome slots_try(struct lock *lock, struct error *error)
{
	enum outcome outcome;

	lock->slot = held_read(lock).slot;
	if (lock->slot >= 0)
		return TAKEN;
	if (!slots_collects(lock))
		return try_slots(lock, error);
	outcome = lock->spec->method->take_slot(lock, SLOT_OF_COLLECTOR, TRY, error);
	if (outcome != TAKEN)
		return outcome;
	outcome = try_slots(lock, error);
	lock->spec->method->drop_slot(lock, SLOT_OF_COLLECTOR);
	if (outcome != TAKEN)
		slots_drop(lock);
	return outcome;
}

enum outcome slots_try_past_collector(struct lock *lock, struct error *error)
{
	enum outcome outcome;

	lock->slot = held_read(lock).slot;
	if (lock->slot >= 0)
		return TAKEN;
	outcome = try_slots(lock, error);
	if (outcome != TAKEN)
		slots_drop(lock);
	return outcome;
}

/* Where a slot is a byte of the range, a caller's descriptor may carry several slots, from an
 * earlier lock: drop them all. */
void slots_drop(struct lock *lock)
{
	bool all = lock->spec->name == NULL && lock_can(lock, CAN_RANGE);

	for (unsigned slot = 0; slot < lock->spec->slots; slot++)
		if (all || lock->slot == (int)slot || slots_has(lock, slot))
			lock->spec->method->drop_slot(lock, slot);
	lock->slot = -1;
	lock->kernel.slots.count = 0;
}

const char *slots_text(const struct lock *lock)
{
	size_t size = lock->kernel.slots.count * sizeof "4095", used = 0;
	char *text = memory_lasting(size + 1);

	for (unsigned slot = 0; text != NULL && slot < lock->spec->slots; slot++)
		if (slots_has(lock, slot))
			used += (size_t)snprintf(text + used, size + 1 - used, "%s%u",
			    used == 0 ? "" : ",", slot);
	return text;
}

/* Have CLOSES report when a descriptor of LOCK's file is closed.  Returns the watch, or -1. */
static int watch_closes(const struct lock *lock)
{
	char path[40];

	if (closes < 0)
		closes = descriptor_above_standard(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
	snprintf(path, sizeof path, "/proc/self/fd/%d", lock->fd);
	if (closes < 0 || fcntl(closes, F_SETOWN, getpid()) != 0)
		return -1;
	return inotify_add_watch(closes, path, IN_CLOSE);
}

/* Was a descriptor closed?  If so, pause, so that the kernel can unlock the slot of that
 * descriptor.  The pause also limits our work if another process opens and closes the file all the
 * time. */
static bool was_closed(void)
{
	static const struct timespec until_unlocked = {0, MILLISECOND / 2};
	char events[4096];
	bool closed = false;

	while (read(closes, events, sizeof events) > 0)
		closed = true;
	if (closed) {
		wakeup_off();
		nanosleep(&until_unlocked, NULL);
	}
	return closed;
}

/* Take SLOT_OF_COLLECTOR, so that only one process collects slots.  The queue ensures that already,
 * but there may be no queue. */
static enum outcome become_collector(struct lock *lock, const struct deadline *deadline,
    struct error *error)
{
	enum outcome outcome = BUSY;

	while (outcome == BUSY && deadline_left(deadline) > 0) {
		if (wakeup_set(deadline_left(deadline), error) != 0)
			return FAILED;
		outcome = lock->spec->method->take_slot(lock, SLOT_OF_COLLECTOR, SLEEP, error);
	}
	return outcome;
}

/* Take what is free.  If that is not enough, sleep on the next slot from *SLOT on that we do not
 * hold. */
static enum outcome sleep_on_slot(struct lock *lock, unsigned *slot, struct error *error)
{
	enum outcome outcome = try_slots(lock, error);

	if (outcome != BUSY)
		return outcome;
	while (slots_has(lock, *slot))
		*slot = (*slot + 1) % lock->spec->slots;
	outcome = lock->spec->method->take_slot(lock, *slot, SLEEP, error);
	if (outcome != TAKEN)
		return outcome;
	note_held(lock, *slot);
	return try_slots(lock, error);
}

/* Take slots as they become free.  Where inotify works, a descriptor that is closed ends the sleep.
 * A holder may also end in another way (-u), or on another machine: so a timer ends the sleep, too,
 * in steps that double up to a second (without inotify, up to a tenth).
 *
 * With --take, keep what has been collected for half a second at most: a holder's child may wait
 * for a slot, past the queue, and the holder may wait for that child. */
static enum outcome await_slots(struct lock *lock, const struct deadline *deadline,
    struct error *error)
{
	const int watch = watch_closes(lock);
	const int64_t longest = watch >= 0 ? SECOND : SECOND / 10;
	const int64_t half_a_second = SECOND / 2;
	const bool collects = slots_collects(lock);
	const struct deadline rest = collects ? deadline_after(half_a_second) : deadline_never();
	int64_t step = collects ? SECOND / 8 : MILLISECOND;
	enum outcome outcome = BUSY;

	for (unsigned slot = 0; outcome == BUSY; slot = (slot + 1) % lock->spec->slots) {
		int64_t left = deadline_left(deadline);

		if (left > deadline_left(&rest))
			left = deadline_left(&rest);
		if (left == 0)
			break;
		if (wakeup_set(left < step ? left : step, error) != 0) {
			outcome = FAILED;
			break;
		}
		if (watch >= 0)
			fcntl(closes, F_SETFL, O_NONBLOCK | O_ASYNC);
		outcome = sleep_on_slot(lock, &slot, error);
		if (watch >= 0)
			/* before wakeup_off(), after which SIGIO would end this process */
			fcntl(closes, F_SETFL, O_NONBLOCK);
		if (watch >= 0 && was_closed())
			step = MILLISECOND;
		else if (step < longest)
			step *= 2;
	}
	if (watch >= 0)
		inotify_rm_watch(closes, watch);
	return outcome;
}

enum outcome slots_sleep(struct lock *lock, const struct deadline *deadline, struct error *error)
{
	enum outcome outcome = TAKEN;

	if (slots_collects(lock))
		outcome = become_collector(lock, deadline, error);
	if (outcome == TAKEN) {
		outcome = await_slots(lock, deadline, error);
		if (slots_collects(lock))
			lock->spec->method->drop_slot(lock, SLOT_OF_COLLECTOR);
	}
	wakeup_off();
	return outcome;
}
