/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <string.h>

#include "owners/sources.h"

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
		seen_lessened(&found->seen, SEEN_NOT_ALL);
	if (ticket == NULL)
		return;
	ticket->used = true;
	/* A ticket's number is twice the time when it was drawn, plus the offset of its range.  If
	 * it was drawn in another time namespace, the clock there may differ from ours. */
	drawn = clock_realtime() - (clock_now() - ticket->number % QUEUE_ORDINARY / 2);
	owner->since_exact = drawn >= owner->since && drawn <= clock_realtime();
	if (owner->since_exact)
		owner->since = drawn;
}

/* PID waits in the kernel's queue: return its ticket, or NULL.  The process with the first ticket
 * waits there too.  If the PID of that process is unknown, assume that the first semlock found
 * there is the one. */
static struct ticket *ticket_for(const struct tickets *tickets, pid_t pid)
{
	struct ticket *first = tickets->list;
	struct procfs_stat seen;

	for (size_t i = 0; i < tickets->count; i++)
		if (tickets->list[i].pid == pid)
			return &tickets->list[i];
	return tickets->count > 0 && first->pid == 0 && !first->used && process_stat(pid, &seen) &&
	               name_is_semlock(seen.name)
	           ? first
	           : NULL;
}

/* /proc/locks does not name the processes that wait for an OFD lock.  If they are in semlock's
 * queue, their tickets name them.  A process that has the file open, but no ticket, is not known to
 * wait. */
void waiters_add(struct owners *found, struct snapshot *snapshot, unsigned kinds,
    struct search *search)
{
	const struct tickets *tickets = &snapshot->tickets;
	const struct procfs_lock *lock;
	struct error ignored;

	if (snapshot->closed_queue.inode != 0 && snapshot->list_state != LIST_FRESH &&
	    search->terms->list_use == LIST_FOR_ALL)
		snapshot_list(snapshot, search, false, &ignored);
	if (tickets->failed)
		found->seen = SEEN_FAILED;
	for (size_t i = 0; i < snapshot->nlisted; i++) {
		lock = &snapshot->listed[i].lock;
		if (!lock->waiting || !owners_count_lock(lock, kinds))
			continue;
		if (lock->pid > 0)
			add_waiter(found, (pid_t)lock->pid, ticket_for(tickets, (pid_t)lock->pid),
			    lock);
		else if (tickets->count == 0)
			add_waiter(found, 0, NULL, lock);
	}
	for (size_t i = 0; i < tickets->count; i++)
		if (!tickets->list[i].used)
			add_waiter(found, tickets->list[i].pid, &tickets->list[i], NULL);
}
