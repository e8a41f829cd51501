/* SPDX-License-Identifier: MIT */
/* The kernel lets a caller sleep on one lock, not on whichever of N comes free first.  So the head of the queue
 * sleeps on one slot, is woken when any descriptor of the lock's file is closed, which is how a holder ends, and then
 * tries all slots. */
#include <config.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "lock/held_mode.h"
#include "lock/slots.h"
#include "sys/wakeup.h"

/* An inotify descriptor, or -1.  It stays open until we end: the kernel takes up to twenty milliseconds to close
 * it. */
static int closes = -1;

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

/* Let CLOSES tell when a descriptor of LOCK's file is closed.  Returns the watch, or -1. */
static int watch_closes(const struct lock *lock)
{
	char path[40];

	if (closes < 0)
		closes = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	snprintf(path, sizeof path, "/proc/self/fd/%d", lock->fd);
	if (closes < 0 || fcntl(closes, F_SETOWN, getpid()) != 0)
		return -1;
	return inotify_add_watch(closes, path, IN_CLOSE);
}

/* Was a descriptor closed?  If so, its slot is unlocked within the pause, which also bounds our work if another process
 * opens and closes the file all the time. */
static bool was_closed(void)
{
	static const struct timespec a_moment = {0, MILLISECOND / 2};
	char events[4096];
	bool closed = false;

	while (read(closes, events, sizeof events) > 0)
		closed = true;
	if (closed) {
		wakeup_off();
		nanosleep(&a_moment, NULL);
	}
	return closed;
}

/* As long as it tells, a descriptor that is closed ends the sleep.  A holder that ends otherwise (-u), or on another
 * machine, is found by the timer, in steps that double up to a second. */
enum outcome slots_sleep(struct lock *lock, const struct wait_options *wait, struct error *error)
{
	const int watch = watch_closes(lock);
	const int64_t longest = watch >= 0 ? SECOND : SECOND / 10;
	int64_t step = MILLISECOND, left;
	enum outcome outcome = BUSY;

	for (unsigned slot = 0; outcome == BUSY && deadline_left(&wait->deadline) > 0;
	     slot = (slot + 1) % lock->spec->slots) {
		left = wait_left(lock, wait);
		if (wakeup_set(left < step ? left : step, error) != 0) {
			outcome = FAILED;
			break;
		}
		if (watch >= 0)
			fcntl(closes, F_SETFL, O_NONBLOCK | O_ASYNC);
		outcome = try_slots(lock, error);
		if (outcome == BUSY)
			outcome = lock->spec->method->take_slot(lock, slot, SLEEP, error);
		if (outcome == TAKEN && lock->slot < 0)
			lock->slot = (int)slot;
		if (watch >= 0)
			fcntl(closes, F_SETFL, O_NONBLOCK); /* before wakeup_off(): its signal would end us */
		step = watch >= 0 && was_closed() ? MILLISECOND : step < longest ? 2 * step : step;
	}
	wakeup_off();
	if (watch >= 0)
		inotify_rm_watch(closes, watch);
	return outcome;
}
