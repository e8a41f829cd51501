#include <config.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "holds.h"
#include "methods/flock.h"
#include "occupants.h"
#include "recorded.h"
#include "scene.h"
#include "told.h"
#include "waiters.h"

struct occupant *occupants_add(struct occupants *found)
{
	struct occupant *list = found->list;

	if ((found->count & (found->count - 1)) == 0)
		list = realloc(list, (found->count == 0 ? 1 : 2 * found->count) * sizeof *list);
	if (list == NULL) {
		found->failed = true;
		return NULL;
	}
	found->list = list;
	list[found->count] = (struct occupant){.slot = -1};
	return &list[found->count++];
}

bool occupant_has(const struct occupant *occupant, pid_t pid)
{
	for (size_t i = 0; i < occupant->nmembers; i++)
		if (occupant->members[i].pid == pid)
			return true;
	return false;
}

void occupants_join(struct occupants *found, struct occupant *occupant, pid_t pid, int fd)
{
	struct member *members;

	if (occupant_has(occupant, pid))
		return;
	members = realloc(occupant->members, (occupant->nmembers + 1) * sizeof *members);
	if (members == NULL) {
		found->failed = true;
		return;
	}
	members[occupant->nmembers++] = (struct member){pid, fd};
	occupant->members = members;
}

void occupants_drop(struct occupants *found, size_t i)
{
	free(found->list[i].members);
	memmove(&found->list[i], &found->list[i + 1],
	    (found->count - i - 1) * sizeof found->list[0]);
	found->count--;
}

unsigned occupants_kinds(const struct lock *lock)
{
	return (lock->method->can & CAN_RANGE) != 0 ? KIND_OFD | KIND_POSIX : KIND_FLOCK;
}

static bool is_flock_slot(const struct procfs_lock *lock)
{
	return lock->kind == KIND_OFD && lock->first >= FLOCK_FIRST_SLOT;
}

bool occupants_count_lock(const struct procfs_lock *lock, unsigned kinds)
{
	return is_flock_slot(lock) ? (kinds & KIND_FLOCK) != 0 : (kinds & lock->kind) != 0;
}

static const char *method_of(unsigned kind)
{
	return kind == KIND_FLOCK ? "flock" : kind == KIND_OFD ? "ofd" : "posix";
}

void occupant_describe(struct occupant *occupant, const struct procfs_lock *lock)
{
	bool slot = is_flock_slot(lock);

	occupant->kind = slot ? KIND_FLOCK : lock->kind;
	occupant->method = method_of(occupant->kind);
	occupant->mode = slot ? MODE_SLOT : lock->exclusive ? MODE_EXCLUSIVE : MODE_SHARED;
	occupant->slot = slot ? (int)(lock->first - FLOCK_FIRST_SLOT) : -1;
	occupant->first = slot ? 0 : lock->first;
	occupant->last = slot ? LLONG_MAX : lock->last;
}

bool occupant_meets(const struct occupant *occupant, const struct lock *lock)
{
	long long first = lock->range.start, last = LLONG_MAX;

	if ((lock->method->can & CAN_RANGE) == 0)
		return true;
	if (lock->slots > 0)
		last = first + (long long)lock->slots - 1;
	else if (lock->range.length > 0)
		last = first + lock->range.length - 1;
	return occupant->first <= last && occupant->last >= first;
}

/* Readers of the same bytes are in nobody's way but a writer's; who has other bytes, in nobody's. */
bool occupant_hinders(const struct occupant *occupant, const struct lock *lock)
{
	if ((lock->method->can & CAN_RANGE) == 0)
		return true;
	return occupant_meets(occupant, lock) &&
	       (occupant->mode != MODE_SHARED || lock->mode != SHARED);
}

static bool keeps_out(const struct procfs_lock *held, const struct lock *lock)
{
	struct occupant holder = {0};

	occupant_describe(&holder, held);
	return occupants_count_lock(held, occupants_kinds(lock)) && occupant_hinders(&holder, lock);
}

bool occupants_proven(const struct lock *lock, pid_t pid)
{
	struct identity file = {lock->device, lock->inode};
	struct grips grips = {0};
	bool proven = false;

	if ((lock->method->can & LEAVES_RECORD) != 0)
		return recorded_holds(lock, pid);
	grips_of(&grips, pid, &file, 1);
	for (size_t i = 0; i < grips.count; i++)
		proven = proven ||
			 (grips.list[i].locked && keeps_out(&grips.list[i].lock, lock));
	grips_forget(&grips);
	return proven;
}

void occupants_keep_meeting(struct occupants *found, const struct lock *lock)
{
	for (size_t i = found->holders; i > 0; i--)
		if (!occupant_meets(&found->list[i - 1], lock)) {
			occupants_drop(found, i - 1);
			found->holders--;
		}
}

/* The process for which HOLDER holds, or 0.  With --hold, semlock's child runs no program, and so has
 * semlock's arguments: --hold=PID names the process, or it is semlock's parent. */
static pid_t caller_of_hold(const struct occupant *holder)
{
	const struct process *child = &holder->process;
	struct process semlock;
	const char *equals;

	if (holder->watcher == 0 || holder->watcher == child->pid || !process_read(holder->watcher, &semlock) ||
	    semlock.command_length != child->command_length ||
	    memcmp(semlock.command, child->command, child->command_length) != 0)
		return 0;
	for (size_t i = 0; i < child->command_length; i += strlen(child->command + i) + 1)
		if (strncmp(child->command + i, "--ho", 4) == 0 &&
		    (equals = strchr(child->command + i, '=')) != NULL)
			return (pid_t)strtol(equals + 1, NULL, 10);
	return semlock.parent;
}

void occupants_name_callers(struct occupants *found)
{
	struct process caller;
	pid_t pid;

	for (size_t i = 0; i < found->holders; i++) {
		pid = caller_of_hold(&found->list[i]);
		if (pid > 1 && process_read(pid, &caller))
			found->list[i].process = caller;
	}
}

/* The first in the queue for a slot has the shared lock already: that is no hold. */
static bool waits_for_slot(const struct occupants *found, const struct occupant *gate)
{
	if (gate->waits || gate->mode != MODE_SHARED || gate->nmembers != 1)
		return false;
	for (size_t i = found->holders; i < found->count; i++)
		if (found->list[i].process.pid == gate->members[0].pid)
			return true;
	return false;
}

static void drop_gates(struct occupants *found)
{
	for (size_t i = found->holders; i > 0; i--)
		if (waits_for_slot(found, &found->list[i - 1])) {
			occupants_drop(found, i - 1);
			found->holders--;
		}
}

/* A lock that is passed on while we look can be missed, or be nobody's for a moment.  Unless
 * there are processes that cannot be looked into, such a look is repeated. */
static bool look_again(const struct occupants *found, const struct scene *scene)
{
	return found->unseen && !scene->grips.blind;
}

int occupants_look(struct occupants *found, const struct lock *lock, unsigned kinds,
    struct why *why)
{
	struct scene scene;

	*found = (struct occupants){0};
	if ((lock->method->can & ON_SERVER) != 0) {
		if (lock->told[0] != '\0')
			told_add(found, lock->method->name, lock->told, false);
		return 0;
	}
	if ((lock->method->can & LEAVES_RECORD) != 0)
		return recorded_look(found, lock, why);
	for (int tries = 0; tries < 4; tries++) {
		occupants_forget(found);
		if (scene_take(&scene, lock, why) != 0) {
			scene_forget(&scene);
			return -1;
		}
		holds_add(found, &scene, kinds);
		waiters_add(found, &scene, kinds);
		drop_gates(found);
		found->failed = found->failed || scene.grips.failed;
		if (!look_again(found, &scene))
			break;
		scene_forget(&scene);
	}
	scene_forget(&scene);
	return 0;
}

bool occupants_held(const struct occupants *found)
{
	for (size_t i = 0; i < found->holders; i++)
		if (found->list[i].verdict != DEAD)
			return true;
	return false;
}

void occupants_forget(struct occupants *found)
{
	for (size_t i = 0; i < found->count; i++)
		free(found->list[i].members);
	free(found->list);
	*found = (struct occupants){0};
}
