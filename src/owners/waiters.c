/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lock/queue.h"
#include "owners/sources.h"

struct ticket {
	long long number;
	pid_t pid; /* 0: cannot be seen */
	bool used;
};

struct tickets {
	struct ticket *list;
	size_t count, room;
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

enum { MOST_TICKETS = 4096 }; /* of processes that cannot be seen */

/* Ask the queue's file for the tickets from FIRST to LAST: those of processes that cannot be seen,
 * too.  Any process may lock any bytes of it. */
static void ask_for_tickets(struct tickets *tickets, int fd, struct allowance *limit)
{
	struct {
		long long first, last;
	} left[MOST_TICKETS + 1];
	struct flock bytes;
	size_t count = 1, asked = 0;
	long long first, last;

	left[0].first = 0;
	left[0].last = QUEUE_ADMISSION - 1;
	while (count > 0 && asked++ < MOST_TICKETS && !allowance_spent(limit)) {
		first = left[--count].first;
		last = left[count].last;
		bytes = (struct flock){.l_type = F_RDLCK,
		    .l_whence = SEEK_SET,
		    .l_start = (off_t)first,
		    .l_len = (off_t)(last - first + 1)};
		if (fcntl(fd, F_OFD_GETLK, &bytes) != 0 || bytes.l_type == F_UNLCK)
			continue;
		if (bytes.l_len == 1 && ticket_numbered(tickets, bytes.l_start) == NULL)
			note_ticket(tickets, bytes.l_start, 0);
		if (bytes.l_start > first) {
			left[count].first = first;
			left[count++].last = bytes.l_start - 1;
		}
		if (bytes.l_len > 0 && bytes.l_start + bytes.l_len <= last) {
			left[count].first = bytes.l_start + bytes.l_len;
			left[count++].last = last;
		}
	}
}

/* Returns false if that file may not be opened. */
static bool ask_queue(struct tickets *tickets, const struct snapshot *snapshot,
    struct allowance *limit)
{
	struct identity file;
	int fd = open(snapshot->queue, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT;
	if (open_fds_identify(fd, "", AT_EMPTY_PATH, &file) &&
	    same_file(&file, &snapshot->files[SNAPSHOT_QUEUE]))
		ask_for_tickets(tickets, fd, limit);
	close(fd);
	return true;
}

static void note_listed_tickets(struct tickets *tickets, const struct snapshot *snapshot)
{
	const struct procfs_lock *lock;

	for (size_t i = 0; i < snapshot->nlisted; i++) {
		lock = &snapshot->listed[i].lock;
		if (snapshot->listed[i].file == SNAPSHOT_QUEUE && is_ticket(lock) &&
		    ticket_numbered(tickets, lock->first) == NULL && tickets->count < tickets->room)
			note_ticket(tickets, lock->first, 0);
	}
}

/* The tickets of processes that may not be looked into. */
static void collect_unseen_tickets(struct tickets *tickets, struct snapshot *snapshot,
    struct search *search)
{
	struct error ignored;

	if (snapshot->list_state != LIST_FRESH && !ask_queue(tickets, snapshot, &search->limit) &&
	    search->terms->list_use == LIST_FOR_ALL)
		snapshot_list(snapshot, search, false, &ignored);
	note_listed_tickets(tickets, snapshot);
}

/* From the descriptors, which belong to a process; then those of the unseen. */
static void collect_tickets(struct tickets *tickets, struct snapshot *snapshot,
    struct search *search)
{
	const struct open_fds *open_fds = &snapshot->open_fds;
	const struct procfs_lock *lock;

	*tickets = (struct tickets){.room = open_fds->count + MOST_TICKETS};
	tickets->list = calloc(tickets->room + 1, sizeof *tickets->list);
	if (tickets->list == NULL)
		return;
	for (size_t i = 0; i < open_fds->count; i++) {
		lock = &open_fds->list[i].lock;
		if (open_fds->list[i].file == SNAPSHOT_QUEUE && open_fds->list[i].locked &&
		    is_ticket(lock))
			note_ticket(tickets, lock->first, open_fds->list[i].pid);
	}
	if (snapshot->nfiles == SNAPSHOT_FILES &&
	    (open_fds->seen > SEEN_ALL || snapshot->list_state == LIST_FRESH))
		collect_unseen_tickets(tickets, snapshot, search);
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
		seen_lessened(&found->seen, SEEN_NOT_ALL);
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
void waiters_add(struct owners *found, struct snapshot *snapshot, unsigned kinds,
    struct search *search)
{
	const struct procfs_lock *lock;
	struct tickets tickets;

	collect_tickets(&tickets, snapshot, search);
	if (tickets.list == NULL)
		found->seen = SEEN_FAILED;
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
