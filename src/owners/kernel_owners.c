/* SPDX-License-Identifier: MIT */
/* A lock is seen twice: in /proc/locks, which every user may read, and in the fdinfo of the descriptors
 * that carry it, which show its holder.  The holder of a line without such a descriptor is unseen. */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "owners/sources.h"

/* Is the lock in OPEN_FD the one that OWNER has: through the same open file description, or, for a
 * lock of the process (posix), by the same process? */
static bool is_same_hold(const struct owner *owner, const struct procfs_lock *owned,
    const struct open_fd *open_fd)
{
	const struct procfs_lock *seen = &open_fd->lock;
	const struct member *member = &owner->members[0];
	int same;

	if (!procfs_same_lock(owned, seen))
		return false;
	if (seen->kind == KIND_POSIX)
		return member->pid == open_fd->pid;
	same = open_fds_same_description(member->pid, member->fd, open_fd->pid, open_fd->fd);
	return same < 0 ? seen->exclusive || seen->pid > 0 : same == 1;
}

static void add_seen(struct owners *found, struct proc_snapshot *snapshot, unsigned kinds)
{
	struct procfs_lock *locks = calloc(snapshot->open_fds.count + 1, sizeof *locks);
	struct owner *owner;
	const struct open_fd *open_fd;
	size_t j;

	for (size_t i = 0; locks != NULL && i < snapshot->open_fds.count; i++) {
		open_fd = &snapshot->open_fds.list[i];
		if (open_fd->file != SNAPSHOT_LOCK || !open_fd->locked || !owners_count_lock(&open_fd->lock, kinds))
			continue;
		for (j = 0; j < found->count; j++)
			if (is_same_hold(&found->list[j], &locks[j], open_fd))
				break;
		if (j == found->count) {
			owner = owners_add(found);
			if (owner == NULL)
				break;
			owner_describe(owner, &open_fd->lock);
			owner->taker = open_fd->lock.pid > 0 ? (pid_t)open_fd->lock.pid : 0;
			locks[j] = open_fd->lock;
			proc_snapshot_account(snapshot, SNAPSHOT_LOCK, &open_fd->lock);
		}
		owners_join(found, &found->list[j], open_fd->pid, open_fd->fd);
	}
	found->failed = found->failed || locks == NULL;
	free(locks);
}

/* The process that took the lock, if it lives and has the lock still: no other process can have it named so.  Else the
 * member whose parent is no member; the oldest of them, if a command has left several behind. */
static void find_root(struct owner *owner, struct process *root)
{
	struct process process;

	root->pid = 0;
	if (owner_has(owner, owner->taker) && process_read(owner->taker, root))
		return;
	root->pid = 0;
	for (size_t i = 0; i < owner->nmembers; i++)
		if (process_read(owner->members[i].pid, &process) &&
		    !owner_has(owner, process.parent) &&
		    (root->pid == 0 || process.started < root->started))
			*root = process;
}

static pid_t find_command(const struct owner *owner, const struct process *supervisor)
{
	unsigned long long oldest = ULLONG_MAX;
	struct procfs_stat stat;
	pid_t command = 0;

	for (size_t i = 0; i < owner->nmembers; i++)
		if (process_stat(owner->members[i].pid, &stat) &&
		    stat.parent == supervisor->pid && stat.started < oldest) {
			command = owner->members[i].pid;
			oldest = stat.started;
		}
	return command != 0 ? command : process_youngest_child(supervisor->pid);
}

/* A command starts when the lock is taken: its start is exact.  A process with a lock in a descriptor
 * of its own started earlier. */
static void name_holder(struct owner *owner)
{
	struct process root, command;
	pid_t pid;

	find_root(owner, &root);
	if (root.pid == 0)
		return; /* all have ended since */
	owner->process = root;
	if (strcmp(root.name, "semlock") == 0 || strcmp(root.name, "flock") == 0) {
		pid = find_command(owner, &root);
		if (pid != 0 && process_read(pid, &command) && command.parent == root.pid) {
			owner->process = command;
			owner->supervisor = root.pid;
			owner->since_exact = true;
		}
	}
	owner->since = process_start(owner->process.started);
}

/* Lines without a descriptor.  The process that a posix lock's line names holds it, and is alive; the
 * one that took another kind may have ended, and its PID be another process's. */
static void add_unseen(struct owners *found, struct proc_snapshot *snapshot, unsigned kinds)
{
	struct owner *owner;
	struct listed_lock *entry;

	for (size_t i = 0; i < snapshot->nlisted; i++) {
		entry = &snapshot->listed[i];
		if (entry->file != SNAPSHOT_LOCK || entry->lock.waiting || entry->accounted ||
		    !owners_count_lock(&entry->lock, kinds))
			continue;
		owner = owners_add(found);
		if (owner == NULL)
			return;
		owner_describe(owner, &entry->lock);
		owner->taker = entry->lock.pid > 0 ? (pid_t)entry->lock.pid : 0;
		if (entry->lock.kind == KIND_POSIX && owner->taker > 0) {
			owners_join(found, owner, owner->taker, -1);
			name_holder(owner);
		}
		found->unseen = found->unseen || owner->process.pid == 0;
	}
}

/* An unseen slot of a flock is two lines, and nothing pairs them: drop as many shared flocks as there are
 * slots. */
static void unite_unseen_slots(struct owners *found)
{
	size_t slots = 0;

	for (size_t i = 0; i < found->count; i++)
		slots += found->list[i].mode == MODE_SLOT && found->list[i].nmembers == 0;
	for (size_t i = found->count; i > 0 && slots > 0; i--)
		if (found->list[i - 1].nmembers == 0 && found->list[i - 1].kind == KIND_FLOCK &&
		    found->list[i - 1].mode == MODE_SHARED) {
			owners_drop(found, i - 1);
			slots--;
		}
}

static bool have_ended(const struct owner *owner)
{
	for (size_t i = 0; i < owner->nmembers; i++)
		if (kill(owner->members[i].pid, 0) == 0 || errno != ESRCH)
			return false;
	return true;
}

/* A process that ended during the look holds nothing.  One that could not be read, for want of a
 * descriptor, has not ended. */
static void drop_ended(struct owners *found)
{
	struct owner *owner;

	for (size_t i = found->count; i > 0; i--) {
		owner = &found->list[i - 1];
		if (owner->nmembers > 0 && owner->process.pid == 0 && have_ended(owner))
			owners_drop(found, i - 1);
	}
}

void kernel_owners_add(struct owners *found, struct proc_snapshot *snapshot, unsigned kinds)
{
	found->failed = snapshot->open_fds.failed;
	add_seen(found, snapshot, kinds);
	for (size_t i = 0; i < found->count; i++)
		name_holder(&found->list[i]);
	drop_ended(found);
	add_unseen(found, snapshot, kinds);
	unite_unseen_slots(found);
	found->holders = found->count;
}
