/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "lock/held_mode.h"
#include "sys/open_fds.h"
#include "sys/process.h"

static enum held_mode mode_of(const struct lock *lock, const struct procfs_lock *held)
{
	const struct bytes bytes = bytes_of(lock);

	if (held->kind != (lock_can(lock, CAN_RANGE) ? KIND_OFD : KIND_FLOCK))
		return HELD_NONE;
	return held->exclusive && held->first <= bytes.first && held->last >= bytes.last
	           ? HELD_EXCLUSIVE
	           : HELD_SHARED;
}

/* Not the collector's byte, which this process has taken itself. */
static bool is_other_slot(const struct lock *lock, const struct procfs_lock *held)
{
	return lock->spec->slots > 0 && !lock_can(lock, CAN_RANGE) && held->kind == KIND_OFD &&
	       held->last >= FLOCK_FIRST_SLOT + (off_t)lock->spec->slots &&
	       held->first < FLOCK_FIRST_SLOT + SLOT_OF_COLLECTOR;
}

static bool is_more(const struct lock *lock, const struct procfs_lock *held)
{
	const struct bytes bytes = bytes_of(lock);
	bool of_slots = held->first >= BYTES_OF_DATA;

	if (!lock_can(lock, CAN_RANGE))
		return held->kind != KIND_FLOCK && (!of_slots || is_other_slot(lock, held));
	if (held->kind != KIND_OFD)
		return true;
	return held->last < bytes.first || (held->first > bytes.last && !of_slots);
}

struct held held_read(const struct lock *lock)
{
	struct held held = {.mode = HELD_NONE, .slot = -1};
	char path[64], text[4096], *rest = text, *line;
	struct procfs_lock one;
	long long slot;

	if (lock->spec->name != NULL)
		return held;
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", lock->fd);
	if (process_file(path, text, sizeof text) < 0)
		return held;
	while ((line = strsep(&rest, "\n")) != NULL) {
		if (!procfs_lock_line(line, &one))
			continue;
		if (held.mode == HELD_NONE)
			held.mode = mode_of(lock, &one);
		slot = one.first - (lock_can(lock, CAN_RANGE) ? (long long)lock->spec->range.start
							      : (long long)FLOCK_FIRST_SLOT);
		if (held.slot < 0 && one.kind == KIND_OFD && one.exclusive && slot >= 0 &&
		    slot < (long long)lock->spec->slots)
			held.slot = (int)slot;
		held.more = held.more || is_more(lock, &one);
		held.other_slot = held.other_slot || is_other_slot(lock, &one);
	}
	return held;
}
