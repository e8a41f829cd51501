/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "lock/queue.h"
#include "owners/sources.h"

struct ticket {
	long long number;
	pid_t pid; /* 0: cannot be seen */
	bool used;
};

struct tickets {
	struct ticket *list;
	size_t count;
};

static int by_number(const void *left, const void *right)
{
	const struct ticket *a = left, *b = right;

	return (a->number > b->number) - (a->number < b->number);
}

static bool is_ticket(const struct procfs_lock *lock)
{
	return lock->kind == KIND_OFD && lock->exclusive && !lock->waiting &&
	       lock->first != QUEUE_ADMISSION;
}

static struct ticket *ticket_numbered(const struct tickets *tickets, long long number)
{
	for (size_t i = 0; i < tickets->count; i++)
		if (tickets->list[i].number == number)
			return &tickets->list[i];
	return NULL;
}

/* While semlock waits for a lock made of files, its command stands at a start barrier with a copy
 * of the ticket: the ticket is the parent's. */
static void note_ticket(struct tickets *tickets, long long number, pid_t pid)
{
	struct ticket *ticket = ticket_numbered(tickets, number);
	struct procfs_stat stat;

	if (ticket == NULL)
		tickets->list[tickets->count++] = (struct ticket){number, pid, false};
	else if (process_stat(ticket->pid, &stat) && stat.parent == pid)
		ticket->pid = pid;
}

/* From the descriptors, which belong to a process; then the lines of the unseen. */
static void collect_tickets(struct tickets *tickets, const struct snapshot *snapshot)
{
	const struct open_fds *open_fds = &snapshot->open_fds;
	const struct procfs_lock *lock;

	*tickets = (struct tickets){
	    calloc(open_fds->count + snapshot->nlisted + 1, sizeof(struct ticket)), 0};
	if (tickets->list == NULL)
		return;
	for (size_t i = 0; i < open_fds->count; i++) {
		lock = &open_fds->list[i].lock;
		if (open_fds->list[i].file == SNAPSHOT_QUEUE && open_fds->list[i].locked &&
		    is_ticket(lock))
			note_ticket(tickets, lock->first, open_fds->list[i].pid);
	}
	for (size_t i = 0; i < snapshot->nlisted; i++) {
		lock = &snapshot->listed[i].lock;
		if (snapshot->listed[i].file == SNAPSHOT_QUEUE && is_ticket(lock) &&
		    ticket_numbered(tickets, lock->first) == NULL)
			note_ticket(tickets, lock->first, 0);
	}
	qsort(tickets->list, tickets->count, sizeof *tickets->list, by_number);
}

static void add_waiter(struct owners *found, pid_t pid, struct ticket *ticket,
    const struct procfs_lock *lock)
{
	struct owner *owner = owners_add(found);
	int64_t drawn;

	if (owner == NULL)
		return;
	owner->waits = true;
	if (lock != NULL)
		owner_describe(owner, lock);
	if (pid > 0 && process_read(pid, &owner->process))
		owner->since = process_start(owner->process.started);
	else
		found->unseen = true;
	if (ticket == NULL)
		return;
	ticket->used = true;
	/* A ticket's number is twice the time at which it was drawn, in one of two ranges.  In a
	 * time namespace, the clock of tickets may be another. */
	drawn = clock_realtime() - (clock_now() - ticket->number % QUEUE_ORDINARY / 2);
	owner->since_exact = drawn >= owner->since && drawn <= clock_realtime();
	if (owner->since_exact)
		owner->since = drawn;
}

/* The ticket of PID, which is in the kernel's queue; or NULL.  The owner of the first ticket blocks
 * there, too: if that ticket cannot be traced to a process, it is the first semlock's. */
static struct ticket *ticket_for(const struct tickets *tickets, pid_t pid)
{
	struct ticket *first = tickets->list;
	struct procfs_stat stat;

	for (size_t i = 0; i < tickets->count; i++)
		if (tickets->list[i].pid == pid)
			return &tickets->list[i];
	return tickets->count > 0 && first->pid == 0 && !first->used && process_stat(pid, &stat) &&
	               strcmp(stat.name, "semlock") == 0
	           ? first
	           : NULL;
}

/* The kernel's queue does not name those that wait for an OFD lock: in semlock's queue, their
 * tickets do; outside of it, a process that has the file open is not known to be one. */
void waiters_add(struct owners *found, const struct snapshot *snapshot, unsigned kinds)
{
	const struct procfs_lock *lock;
	struct tickets tickets;

	collect_tickets(&tickets, snapshot);
	found->failed = found->failed || tickets.list == NULL;
	for (size_t i = 0; i < snapshot->nlisted; i++) {
		lock = &snapshot->listed[i].lock;
		if (snapshot->listed[i].file != SNAPSHOT_LOCK || !lock->waiting ||
		    !owners_count_lock(lock, kinds))
			continue;
		if (lock->pid > 0)
			add_waiter(found, (pid_t)lock->pid, ticket_for(&tickets, (pid_t)lock->pid),
			    lock);
		else if (tickets.count == 0)
			add_waiter(found, 0, NULL, lock);
	}
	for (size_t i = 0; tickets.list != NULL && i < tickets.count; i++)
		if (!tickets.list[i].used)
			add_waiter(found, tickets.list[i].pid, &tickets.list[i], NULL);
	free(tickets.list);
}
