#include <config.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "owners/kernel_owners.h"
#include "owners/owners.h"
#include "owners/record_owners.h"
#include "owners/proc_snapshot.h"
#include "owners/server_owners.h"
#include "owners/waiters.h"

struct owner *owners_add(struct owners *found)
{
	struct owner *list = found->list;

	if ((found->count & (found->count - 1)) == 0)
		list = realloc(list, (found->count == 0 ? 1 : 2 * found->count) * sizeof *list);
	if (list == NULL) {
		found->failed = true;
		return NULL;
	}
	found->list = list;
	list[found->count] = (struct owner){.slot = -1};
	return &list[found->count++];
}

bool occupant_has(const struct owner *owner, pid_t pid)
{
	for (size_t i = 0; i < owner->nmembers; i++)
		if (owner->members[i].pid == pid)
			return true;
	return false;
}

void owners_join(struct owners *found, struct owner *owner, pid_t pid, int fd)
{
	struct member *members;

	if (occupant_has(owner, pid))
		return;
	members = realloc(owner->members, (owner->nmembers + 1) * sizeof *members);
	if (members == NULL) {
		found->failed = true;
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
}

unsigned owners_kinds(const struct lock *lock)
{
	return (lock->method->can & CAN_RANGE) != 0 ? KIND_OFD | KIND_POSIX : KIND_FLOCK;
}

static bool is_flock_slot(const struct procfs_lock *lock)
{
	return lock->kind == KIND_OFD && lock->first >= FLOCK_FIRST_SLOT;
}

bool owners_count_lock(const struct procfs_lock *lock, unsigned kinds)
{
	return is_flock_slot(lock) ? (kinds & KIND_FLOCK) != 0 : (kinds & lock->kind) != 0;
}

static const char *method_of(unsigned kind)
{
	return kind == KIND_FLOCK ? "flock" : kind == KIND_OFD ? "ofd" : "posix";
}

void owner_describe(struct owner *owner, const struct procfs_lock *lock)
{
	bool slot = is_flock_slot(lock);

	owner->kind = slot ? KIND_FLOCK : lock->kind;
	owner->method = method_of(owner->kind);
	owner->mode = slot ? MODE_SLOT : lock->exclusive ? MODE_EXCLUSIVE : MODE_SHARED;
	owner->slot = slot ? (int)(lock->first - FLOCK_FIRST_SLOT) : -1;
	owner->first = slot ? 0 : lock->first;
	owner->last = slot ? LLONG_MAX : lock->last;
}

bool owner_meets(const struct owner *owner, const struct lock *lock)
{
	long long first = lock->range.start, last = LLONG_MAX;

	if ((lock->method->can & CAN_RANGE) == 0)
		return true;
	if (lock->slots > 0)
		last = first + (long long)lock->slots - 1;
	else if (lock->range.length > 0)
		last = first + lock->range.length - 1;
	return owner->first <= last && owner->last >= first;
}

/* Readers of the same bytes are in nobody's way but a writer's; who has other bytes, in nobody's. */
bool owner_hinders(const struct owner *owner, const struct lock *lock)
{
	if ((lock->method->can & CAN_RANGE) == 0)
		return true;
	return owner_meets(owner, lock) &&
	       (owner->mode != MODE_SHARED || lock->mode != SHARED);
}

static bool keeps_out(const struct procfs_lock *held, const struct lock *lock)
{
	struct owner holder = {0};

	owner_describe(&holder, held);
	return owners_count_lock(held, owners_kinds(lock)) && owner_hinders(&holder, lock);
}

bool owners_proven(const struct lock *lock, pid_t pid)
{
	struct identity file = {lock->device, lock->inode};
	struct open_fds open_fds = {0};
	bool proven = false;

	if ((lock->method->can & LEAVES_RECORD) != 0)
		return record_owners_held(lock, pid);
	open_fds_of(&open_fds, pid, &file, 1);
	for (size_t i = 0; i < open_fds.count; i++)
		proven = proven ||
			 (open_fds.list[i].locked && keeps_out(&open_fds.list[i].lock, lock));
	open_fds_forget(&open_fds);
	return proven;
}

void owners_keep_meeting(struct owners *found, const struct lock *lock)
{
	for (size_t i = found->pipe_holders; i > 0; i--)
		if (!owner_meets(&found->list[i - 1], lock)) {
			owners_drop(found, i - 1);
			found->pipe_holders--;
		}
}

/* The process for which HOLDER holds, or 0.  With --hold, semlock's child runs no program, and so has
 * semlock's arguments: --hold=PID names the process, or it is semlock's parent. */
static pid_t caller_of_hold(const struct owner *holder)
{
	const struct process *child = &holder->process;
	struct process semlock;
	const char *equals;

	if (holder->supervisor == 0 || holder->supervisor == child->pid || !process_read(holder->supervisor, &semlock) ||
	    semlock.command_length != child->command_length ||
	    memcmp(semlock.command, child->command, child->command_length) != 0)
		return 0;
	for (size_t i = 0; i < child->command_length; i += strlen(child->command + i) + 1)
		if (strncmp(child->command + i, "--ho", 4) == 0 &&
		    (equals = strchr(child->command + i, '=')) != NULL)
			return (pid_t)strtol(equals + 1, NULL, 10);
	return semlock.parent;
}

void occupants_name_callers(struct owners *found)
{
	struct process caller;
	pid_t pid;

	for (size_t i = 0; i < found->pipe_holders; i++) {
		pid = caller_of_hold(&found->list[i]);
		if (pid > 1 && process_read(pid, &caller))
			found->list[i].process = caller;
	}
}

/* The first in the queue for a slot has the shared lock already: that is no hold. */
static bool waits_for_slot(const struct owners *found, const struct owner *gate)
{
	if (gate->waits || gate->mode != MODE_SHARED || gate->nmembers != 1)
		return false;
	for (size_t i = found->pipe_holders; i < found->count; i++)
		if (found->list[i].process.pid == gate->members[0].pid)
			return true;
	return false;
}

static void drop_gates(struct owners *found)
{
	for (size_t i = found->pipe_holders; i > 0; i--)
		if (waits_for_slot(found, &found->list[i - 1])) {
			owners_drop(found, i - 1);
			found->pipe_holders--;
		}
}

/* A lock that is passed on while we look can be missed, or be nobody's for a moment.  Unless
 * there are processes that cannot be looked into, such a look is repeated. */
static bool look_again(const struct owners *found, const struct proc_snapshot *proc_snapshot)
{
	return found->unseen && !proc_snapshot->open_fds.blind;
}

int owners_look(struct owners *found, const struct lock *lock, unsigned kinds,
    struct error *error)
{
	struct proc_snapshot proc_snapshot;

	*found = (struct owners){0};
	if ((lock->method->can & ON_SERVER) != 0) {
		if (lock->server_text[0] != '\0')
			server_owners_add(found, lock->method->name, lock->server_text, false);
		return 0;
	}
	if ((lock->method->can & LEAVES_RECORD) != 0)
		return record_owners_look(found, lock, error);
	for (int tries = 0; tries < 4; tries++) {
		owners_forget(found);
		if (proc_snapshot_take(&proc_snapshot, lock, error) != 0) {
			proc_snapshot_forget(&proc_snapshot);
			return -1;
		}
		kernel_owners_add(found, &proc_snapshot, kinds);
		waiters_add(found, &proc_snapshot, kinds);
		drop_gates(found);
		found->failed = found->failed || proc_snapshot.open_fds.failed;
		if (!look_again(found, &proc_snapshot))
			break;
		proc_snapshot_forget(&proc_snapshot);
	}
	proc_snapshot_forget(&proc_snapshot);
	return 0;
}

bool owners_held(const struct owners *found)
{
	for (size_t i = 0; i < found->pipe_holders; i++)
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
