/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "owners/sources.h"

struct owner *owners_add(struct owners *found)
{
	struct owner *list = found->list;

	if ((found->count & (found->count - 1)) == 0)
		list = realloc(list, (found->count == 0 ? 1 : 2 * found->count) * sizeof *list);
	if (list == NULL) {
		found->seen = SEEN_FAILED;
		return NULL;
	}
	found->list = list;
	list[found->count] = (struct owner){.slot = -1, .last_slot = -1};
	return &list[found->count++];
}

bool owner_has(const struct owner *owner, pid_t pid)
{
	for (size_t i = 0; i < owner->nmembers; i++)
		if (owner->members[i].pid == pid)
			return true;
	return false;
}

void owners_join(struct owners *found, struct owner *owner, pid_t pid, int fd)
{
	struct member *members;

	if (owner_has(owner, pid))
		return;
	members = realloc(owner->members, (owner->nmembers + 1) * sizeof *members);
	if (members == NULL) {
		found->seen = SEEN_FAILED;
		return;
	}
	members[owner->nmembers++] = (struct member){pid, fd};
	owner->members = members;
}

void owners_drop(struct owners *found, size_t i)
{
	free(found->list[i].members);
	memmove(&found->list[i], &found->list[i + 1],
	    (found->count - i - 1) * sizeof found->list[0]);
	found->count--;
	if (i < found->holders)
		found->holders--;
}

unsigned owners_kinds(const struct lock *lock)
{
	return lock_can(lock, CAN_RANGE) ? KIND_OFD | KIND_POSIX : KIND_FLOCK;
}

static bool is_flock_slot(const struct procfs_lock *lock)
{
	return lock->kind == KIND_OFD && lock->first >= FLOCK_FIRST_SLOT;
}

bool owners_count_lock(const struct procfs_lock *lock, unsigned kinds)
{
	if (lock->first == FLOCK_FIRST_SLOT + SLOT_OF_COLLECTOR)
		return false; /* this one only makes processes with --take wait for each other */
	return is_flock_slot(lock) ? (kinds & KIND_FLOCK) != 0 : (kinds & lock->kind) != 0;
}

void owner_describe(struct owner *owner, const struct procfs_lock *lock)
{
	bool slot = is_flock_slot(lock);

	owner->kind = slot ? KIND_FLOCK : lock->kind;
	owner->method = owner->kind == KIND_FLOCK ? "flock"
	                : owner->kind == KIND_OFD ? "ofd"
	                                          : "posix";
	owner->mode = slot ? MODE_SLOT : lock->exclusive ? MODE_EXCLUSIVE : MODE_SHARED;
	owner->slot = slot ? (int)(lock->first - FLOCK_FIRST_SLOT) : -1;
	owner->last_slot = slot ? (int)(lock->last - FLOCK_FIRST_SLOT) : -1;
	owner->first = slot ? 0 : lock->first;
	owner->last = slot ? LLONG_MAX : lock->last;
}

bool owner_conflicts(const struct owner *owner, const struct lock *lock)
{
	return !lock_can(lock, CAN_RANGE) ||
	       (lock_overlaps(lock, owner->first, owner->last) &&
		   (owner->mode != MODE_SHARED || lock->spec->mode != SHARED));
}

bool owners_held(const struct owners *found)
{
	for (size_t i = 0; i < found->holders; i++)
		if (found->list[i].verdict != DEAD)
			return true;
	return false;
}

void owners_forget(struct owners *found)
{
	for (size_t i = 0; i < found->count; i++)
		free(found->list[i].members);
	free(found->list);
	*found = (struct owners){0};
}
