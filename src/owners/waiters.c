#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sys/deadline.h"
#include "lock/queue.h"
#include "owners/waiters.h"

struct ticket {
	long long number;
	pid_t pid; /* 0: cannot be seen */
	bool used;
};

struct tickets {
	struct ticket *list;
	size_t count;
};

static int earlier_first(const void *left, const void *right)
{
	const struct ticket *a = left, *b = right;

	return (a->number > b->number) - (a->number < b->number);
}

static bool is_ticket(const struct procfs_lock *lock)
{
	return lock->kind == KIND_OFD && lock->exclusive && !lock->waiting;
}

static struct ticket *known(const struct tickets *tickets, long long number)
{
	for (size_t i = 0; i < tickets->count; i++)
		if (tickets->list[i].number == number)
			return &tickets->list[i];
	return NULL;
}

static bool is_child(pid_t pid, pid_t parent)
{
	struct procfs_stat stat;

	return process_stat(pid, &stat) && stat.parent == parent;
}

/* Who waits for a lock made of files has its command ready at a gate, with a copy of the
 * ticket: it is the parent's. */
static void note(struct tickets *tickets, long long number, pid_t pid)
{
	struct ticket *ticket = known(tickets, number);

	if (ticket == NULL)
		tickets->list[tickets->count++] = (struct ticket){number, pid, false};
	else if (is_child(ticket->pid, pid))
		ticket->pid = pid;
}

/* From the descriptors, which name their process, then from the list, which shows what is
 * left. */
static void collect(struct tickets *tickets, const struct proc_snapshot *snapshot)
{
	const struct open_fds *open_fds = &snapshot->open_fds;
	const struct procfs_lock *lock;

	*tickets = (struct tickets){calloc(open_fds->count + snapshot->nlisted + 1,
					sizeof(struct ticket)), 0};
	if (tickets->list == NULL)
		return;
	for (size_t i = 0; i < open_fds->count; i++) {
		lock = &open_fds->list[i].lock;
		if (open_fds->list[i].file == SNAPSHOT_QUEUE && open_fds->list[i].locked && is_ticket(lock))
			note(tickets, lock->first, open_fds->list[i].pid);
	}
	for (size_t i = 0; i < snapshot->nlisted; i++) {
		lock = &snapshot->listed[i].lock;
		if (snapshot->listed[i].file == SNAPSHOT_QUEUE && is_ticket(lock) &&
		    known(tickets, lock->first) == NULL)
			note(tickets, lock->first, 0);
	}
	qsort(tickets->list, tickets->count, sizeof *tickets->list, earlier_first);
}

static struct ticket *ticket_of(const struct tickets *tickets, pid_t pid)
{
	for (size_t i = 0; i < tickets->count; i++)
		if (tickets->list[i].pid == pid)
			return &tickets->list[i];
	return NULL;
}

/* A ticket is twice the time at which it was drawn, in one of two ranges. */
static int64_t drawn(const struct ticket *ticket)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * SECOND + now.tv_nsec - (clock_now() - ticket->number % QUEUE_ORDINARY / 2);
}

static void add(struct owners *found, pid_t pid, struct ticket *ticket,
    const struct procfs_lock *lock)
{
	struct owner *owner = owners_add(found);

	if (owner == NULL)
		return;
	owner->waits = true;
	if (lock != NULL)
		owner_describe(owner, lock);
	if (pid > 0 && process_read(pid, &owner->process))
		owner->since = process_start(owner->process.started);
	else
		found->unseen = true;
	if (ticket != NULL) {
		ticket->used = true;
		owner->since = drawn(ticket);
		owner->since_exact = true;
	}
}

/* The first ticket's drawer stands in the kernel's queue as well.  Where the ticket is all
 * that we may see of it, it is the first semlock there. */
static struct ticket *ticket_for(const struct tickets *tickets, pid_t pid)
{
	struct ticket *ticket = ticket_of(tickets, pid);
	struct procfs_stat stat;

	if (ticket == NULL && tickets->count > 0 && tickets->list[0].pid == 0 &&
	    !tickets->list[0].used && process_stat(pid, &stat) && strcmp(stat.name, "semlock") == 0)
		ticket = &tickets->list[0];
	return ticket;
}

/* Everybody in the kernel's queue whom it names.  Returns how many it does not name. */
static size_t add_named(struct owners *found, const struct proc_snapshot *snapshot,
    const struct tickets *tickets, unsigned kinds)
{
	const struct procfs_lock *lock;
	size_t nameless = 0;

	for (size_t i = 0; i < snapshot->nlisted; i++) {
		lock = &snapshot->listed[i].lock;
		if (snapshot->listed[i].file != SNAPSHOT_LOCK || !lock->waiting ||
		    !owners_count_lock(lock, kinds))
			continue;
		if (lock->pid > 0)
			add(found, (pid_t)lock->pid, ticket_for(tickets, (pid_t)lock->pid), lock);
		else
			nameless++;
	}
	return nameless;
}

static bool takes_part(const struct owners *found, pid_t pid)
{
	const struct owner *owner;

	for (size_t i = 0; i < found->count; i++) {
		owner = &found->list[i];
		if (owner->process.pid == pid)
			return true;
		for (size_t j = 0; j < owner->nmembers; j++)
			if (owner->members[j].pid == pid)
				return true;
	}
	return false;
}

/* Who waits for a lock of its open file description is not named.  In semlock's queue it is
 * the first there, and has been named by its ticket.  Outside of it, it must be one of those
 * who have the file open and nothing locked; if there are more of them than waiters, who it
 * is stays unknown. */
static void add_nameless(struct owners *found, const struct proc_snapshot *snapshot, size_t nameless)
{
	const struct open_fds *open_fds = &snapshot->open_fds;
	size_t candidates = 0;

	for (size_t i = 0; i < open_fds->count; i++)
		candidates += open_fds->list[i].file == SNAPSHOT_LOCK && !open_fds->list[i].locked &&
			      !takes_part(found, open_fds->list[i].pid);
	for (size_t i = 0; i < open_fds->count && candidates <= nameless; i++)
		if (open_fds->list[i].file == SNAPSHOT_LOCK && !open_fds->list[i].locked &&
		    !takes_part(found, open_fds->list[i].pid))
			add(found, open_fds->list[i].pid, NULL, NULL);
	if (candidates == 0 || candidates > nameless)
		while (nameless-- > 0)
			add(found, 0, NULL, NULL);
}

void waiters_add(struct owners *found, const struct proc_snapshot *snapshot, unsigned kinds)
{
	struct tickets tickets;
	size_t nameless;

	collect(&tickets, snapshot);
	nameless = add_named(found, snapshot, &tickets, kinds);
	for (size_t i = 0; i < tickets.count; i++)
		if (!tickets.list[i].used)
			add(found, tickets.list[i].pid, &tickets.list[i], NULL);
	if (nameless > 0 && tickets.count == 0)
		add_nameless(found, snapshot, nameless);
	free(tickets.list);
}
