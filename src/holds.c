/* A lock is seen twice: in the kernel's list, which everybody may read, and in the fdinfo of
 * the descriptors that carry it, which shows who has it now.  What is in the list and in no
 * descriptor that we could look at belongs to somebody unseen. */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "holds.h"

/* The lock in GRIP's descriptor is the one that OCCUPANT has: through the same description,
 * or, for a lock of the process, by the same process. */
static bool is_same_hold(const struct occupant *occupant, const struct procfs_lock *theirs,
    const struct grip *grip)
{
	const struct procfs_lock *ours = &grip->lock;
	const struct member *member = &occupant->members[0];
	int same;

	if (theirs->kind != ours->kind || theirs->exclusive != ours->exclusive ||
	    theirs->pid != ours->pid || theirs->first != ours->first || theirs->last != ours->last)
		return false;
	if (ours->kind == KIND_POSIX)
		return member->pid == grip->pid;
	same = grips_same_description(member->pid, member->fd, grip->pid, grip->fd);
	return same < 0 ? ours->exclusive || ours->pid > 0 : same == 1;
}

/* The line of the list about this lock is accounted for. */
static void account(struct scene *scene, const struct procfs_lock *lock)
{
	struct listed *entry;

	for (size_t i = 0; i < scene->nlisted; i++) {
		entry = &scene->listed[i];
		if (entry->file == SCENE_LOCK && !entry->accounted && !entry->lock.waiting &&
		    entry->lock.kind == lock->kind && entry->lock.exclusive == lock->exclusive &&
		    (entry->lock.pid == lock->pid || lock->pid == 0) &&
		    entry->lock.first == lock->first && entry->lock.last == lock->last) {
			entry->accounted = true;
			return;
		}
	}
}

static void add_seen(struct occupants *found, struct scene *scene, unsigned kinds)
{
	struct procfs_lock *locks = calloc(scene->grips.count + 1, sizeof *locks);
	struct occupant *occupant;
	const struct grip *grip;
	size_t j;

	for (size_t i = 0; locks != NULL && i < scene->grips.count; i++) {
		grip = &scene->grips.list[i];
		if (grip->file != SCENE_LOCK || !grip->locked || !occupants_count_lock(&grip->lock, kinds))
			continue;
		for (j = 0; j < found->count; j++)
			if (is_same_hold(&found->list[j], &locks[j], grip))
				break;
		if (j == found->count) {
			occupant = occupants_add(found);
			if (occupant == NULL)
				break;
			occupant_describe(occupant, &grip->lock);
			occupant->taker = grip->lock.pid > 0 ? (pid_t)grip->lock.pid : 0;
			locks[j] = grip->lock;
			account(scene, &grip->lock);
		}
		occupants_join(found, &found->list[j], grip->pid, grip->fd);
	}
	found->failed = found->failed || locks == NULL;
	free(locks);
}

/* The slot of a flock is two locks, the shared one and a byte: make them one again. */
static void unite_slots(struct occupants *found)
{
	struct occupant *slot, *gate;

	for (size_t i = 0; i < found->count; i++) {
		slot = &found->list[i];
		for (size_t j = 0; slot->mode == MODE_SLOT && j < found->count; j++) {
			gate = &found->list[j];
			if (gate->kind != KIND_FLOCK || gate->mode != MODE_SHARED ||
			    gate->nmembers == 0 || slot->nmembers == 0 ||
			    gate->members[0].pid != slot->members[0].pid ||
			    gate->members[0].fd != slot->members[0].fd)
				continue;
			slot->taker = gate->taker;
			occupants_drop(found, j);
			i = (size_t)-1;
			break;
		}
	}
}

/* Of those who share the lock, the one whose parent does not, and if there are several, as
 * when a command has left some behind, the oldest. */
static void find_root(struct occupant *occupant, struct process *root)
{
	struct process process;

	root->pid = 0;
	for (size_t i = 0; i < occupant->nmembers; i++)
		if (process_read(occupant->members[i].pid, &process) &&
		    !occupant_has(occupant, process.parent) &&
		    (root->pid == 0 || process.started < root->started))
			*root = process;
}

static bool is_watcher(const struct process *process)
{
	return strcmp(process->name, "semlock") == 0 || strcmp(process->name, "flock") == 0;
}

static pid_t find_command(const struct occupant *occupant, const struct process *watcher)
{
	unsigned long long oldest = ULLONG_MAX;
	struct procfs_stat stat;
	pid_t command = 0;

	for (size_t i = 0; i < occupant->nmembers; i++)
		if (process_stat(occupant->members[i].pid, &stat) &&
		    stat.parent == watcher->pid && stat.started < oldest) {
			command = occupant->members[i].pid;
			oldest = stat.started;
		}
	return command != 0 ? command : process_youngest_child(watcher->pid);
}

/* A command is started as soon as the lock is there, so its start is the lock's; whoever
 * holds a lock in a descriptor of its own was there before it. */
static void name_holder(struct occupant *occupant)
{
	struct process root, command;
	pid_t pid;

	find_root(occupant, &root);
	if (root.pid == 0)
		return; /* they have all ended while we looked */
	occupant->process = root;
	if (is_watcher(&root)) {
		pid = find_command(occupant, &root);
		if (pid != 0 && process_read(pid, &command) && command.parent == root.pid) {
			occupant->process = command;
			occupant->watcher = root.pid;
			occupant->since_exact = true;
		}
	}
	occupant->since = process_start(occupant->process.started);
}

/* What nobody whom we could look at has.  The owner of a process's lock is named by the list
 * and alive; whoever took another kind may be gone, and its number somebody else's. */
static void add_unseen(struct occupants *found, struct scene *scene, unsigned kinds)
{
	struct occupant *occupant;
	struct listed *entry;

	for (size_t i = 0; i < scene->nlisted; i++) {
		entry = &scene->listed[i];
		if (entry->file != SCENE_LOCK || entry->lock.waiting || entry->accounted ||
		    !occupants_count_lock(&entry->lock, kinds))
			continue;
		occupant = occupants_add(found);
		if (occupant == NULL)
			return;
		occupant_describe(occupant, &entry->lock);
		occupant->taker = entry->lock.pid > 0 ? (pid_t)entry->lock.pid : 0;
		if (entry->lock.kind == KIND_POSIX && occupant->taker > 0) {
			occupants_join(found, occupant, occupant->taker, -1);
			name_holder(occupant);
		}
		found->unseen = found->unseen || occupant->process.pid == 0;
	}
}

/* An unseen slot of a flock is two lines of the list, and which belongs to which is not said:
 * as many shared ones as there are slots are dropped. */
static void unite_unseen_slots(struct occupants *found)
{
	size_t slots = 0;

	for (size_t i = 0; i < found->count; i++)
		slots += found->list[i].mode == MODE_SLOT && found->list[i].nmembers == 0;
	for (size_t i = found->count; i > 0 && slots > 0; i--)
		if (found->list[i - 1].nmembers == 0 && found->list[i - 1].kind == KIND_FLOCK &&
		    found->list[i - 1].mode == MODE_SHARED) {
			occupants_drop(found, i - 1);
			slots--;
		}
}

static bool have_ended(const struct occupant *occupant)
{
	for (size_t i = 0; i < occupant->nmembers; i++)
		if (kill(occupant->members[i].pid, 0) == 0 || errno != ESRCH)
			return false;
	return true;
}

/* Ended between two looks: who has ended holds nothing.  Who cannot be read of, for want of a
 * descriptor, has not. */
static void drop_ended(struct occupants *found)
{
	struct occupant *one;

	for (size_t i = found->count; i > 0; i--) {
		one = &found->list[i - 1];
		if (one->nmembers > 0 && one->process.pid == 0 && have_ended(one))
			occupants_drop(found, i - 1);
	}
}

void holds_add(struct occupants *found, struct scene *scene, unsigned kinds)
{
	add_seen(found, scene, kinds);
	unite_slots(found);
	for (size_t i = 0; i < found->count; i++)
		name_holder(&found->list[i]);
	drop_ended(found);
	add_unseen(found, scene, kinds);
	unite_unseen_slots(found);
	found->holders = found->count;
}
