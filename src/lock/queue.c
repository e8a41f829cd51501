/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lock/queue.h"
#include "sys/crash_points.h"
#include "sys/files.h"
#include "sys/process.h"
#include "sys/signals.h"

/* The descriptor that carries our ticket; -1: none.  While it is open, this process must not close
 * any other descriptor of that file: the kernel would drop the ticket. */
static int carrier = -1;

static void close_queue(struct queue *queue)
{
	if (queue->fd >= 0)
		close(queue->fd);
	queue->fd = carrier = -1;
}

/* Does ERRNUM mean that something other than a plain file has the queue's name? */
#define IS_IN_THE_WAY(errnum) ((errnum) == ELOOP || (errnum) == EISDIR || (errnum) == ENXIO)

/* Remove, once, whatever has the queue's name, if that is permitted: the next open then finds or
 * creates another file.  Returns whether it was removed. */
static bool clear_name(struct queue *queue, const struct lock *lock)
{
	if (queue->cleared || queuefile_clear(lock) != 0)
		return false;
	queue->cleared = true;
	return true;
}

/* Close the queue's file, which cannot be used, as TRUST says.  Returns whether to open the queue
 * again: yes if the file was removed, or could be removed here.  (Before our check, the last
 * process to leave may have removed a trusted file.  If that made the queue unusable, readers could
 * starve a writer.) */
static bool close_to_retry(struct queue *queue, const struct lock *lock, enum trust trust)
{
	close_queue(queue);
	return trust == REMOVED || clear_name(queue, lock);
}

void queue_open(struct queue *queue, const struct lock *lock)
{
	while ((queue->fd = queuefile_open(lock)) < 0 && errno != ENOENT) {
		queue->unusable = !IS_IN_THE_WAY(errno) || !clear_name(queue, lock);
		if (queue->unusable)
			return;
	}
}

/* Call fcntl(2) with COMMAND, for a lock of TYPE on LENGTH bytes (0: to the end) at offset AT.
 * F_SETLK and F_GETLK are for tickets: such locks belong to the process, so the kernel tells which
 * process has one, and no child inherits it.  F_OFD_SETLKW sleeps on another process's ticket:
 * F_SETLKW would fail with EDEADLK where two processes wait for each other in two queues. */
static int lock_tickets(const struct queue *queue, int command, short type, int64_t at,
    off_t length)
{
	struct flock bytes = {
	    .l_type = type,
	    .l_whence = SEEK_SET,
	    .l_start = (off_t)at,
	    .l_len = length,
	};

	return fcntl(queue->fd, command, &bytes);
}

/* The length of our ticket in bytes: two if it is marked, else one.  Tickets are even numbers, so
 * two bytes end before the next ticket begins. */
static off_t ticket_length(const struct queue *queue)
{
	return queue->supersedes ? 2 : 1;
}

struct found {
	int64_t first, last; /* bytes found: a process may lock many at once */
	int64_t start;       /* of the lock that includes FIRST */
	pid_t pid;           /* 0: in another PID namespace; -1: a descriptor's, not a process's */
};

/* Each F_GETLK walks through all tickets.  If a search uses more processor time than this, a
 * hostile process has made too many: ignore all tickets, and fall back to the kernel's order. */
#define SEARCH_LIMIT (10 * MILLISECOND)

/* Is there a ticket in [FROM, TO)?  Of several, the kernel gives the one that was locked first. */
static bool find_ticket(struct queue *queue, int64_t from, int64_t to, struct found *found)
{
	struct flock probe = {
	    .l_type = F_RDLCK,
	    .l_whence = SEEK_SET,
	    .l_start = (off_t)from,
	    .l_len = (off_t)(to - from),
	};

	if (from >= to || queue->hostile || fcntl(queue->fd, F_GETLK, &probe) != 0 ||
	    probe.l_type == F_UNLCK)
		return false;
	queue->hostile = effort_exceeds(&queue->search, SEARCH_LIMIT);
	found->pid = probe.l_pid;
	found->start = probe.l_start;
	found->first = probe.l_start > from ? probe.l_start : from;
	found->last = probe.l_len == 0 || probe.l_start + probe.l_len > to
	                  ? to - 1
	                  : probe.l_start + probe.l_len - 1;
	return !queue->hostile;
}

static bool has_ticket(struct queue *queue, int64_t from, int64_t to)
{
	struct found found;

	queue->search = effort_begins();
	return find_ticket(queue, from, to, &found);
}

/* Is FOUND the ticket of a stopped process?  Check the ticket again afterwards: if PID still has
 * it, no other process has reused the PID meanwhile. */
static bool is_stopped(struct queue *queue, const struct found *found)
{
	struct found again;

	if (found->pid <= 0 || !process_stopped(found->pid))
		return false;
	return !find_ticket(queue, found->first, found->first + 1, &again) ||
	       again.pid == found->pid;
}

/* A marked ticket is exactly two bytes long, and begins at an even offset: no other lock counts as
 * marked, whoever has it. */
static bool is_marked(const struct found *found)
{
	return found->start == found->first && found->first % 2 == 0 &&
	       found->last == found->first + 1;
}

/* Find, in [FROM, TO), the ticket of a process that is not stopped; with MARKED, a marked one. */
static bool find_living(struct queue *queue, int64_t from, int64_t to, bool marked,
    struct found *found)
{
	int64_t next;

	while (find_ticket(queue, from, to, found)) {
		if ((!marked || is_marked(found)) && !is_stopped(queue, found))
			return true;
		next = found->last + 1;
		if (find_living(queue, from, found->first, marked, found))
			return true;
		from = next;
	}
	return false;
}

/* The highest ticket in (LOW, HIGH), or LOW.  Searches by halving. */
static int64_t find_highest(struct queue *queue, int64_t low, int64_t high)
{
	struct found found;
	int64_t middle;

	while (low + 1 < high && find_ticket(queue, low + 1, high, &found)) {
		low = found.last;
		middle = low + (high - low) / 2;
		if (middle <= low)
			continue;
		if (find_ticket(queue, middle, high, &found))
			low = found.last;
		else
			high = middle;
	}
	return low;
}

/* Find the nearest ticket before ours, from OLDEST on.  Tickets that were drawn at about the same
 * time are close to each other: so look close to ours first. */
static int64_t find_predecessor(struct queue *queue, int64_t oldest)
{
	struct found found;
	int64_t window;

	for (window = 4 * MILLISECOND;
	     window < queue->ticket - oldest && window < QUEUE_ORDINARY / 8; window *= 8)
		if (find_ticket(queue, queue->ticket - window, queue->ticket, &found))
			return find_highest(queue, found.last, queue->ticket);
	return find_highest(queue, oldest, queue->ticket);
}

/* Find TICKET.  Usually it is KNOWN, which was found a moment ago. */
static bool find_again(struct queue *queue, int64_t ticket, const struct found *known,
    struct found *found)
{
	*found = *known;
	return ticket == known->first || find_ticket(queue, ticket, ticket + 1, found);
}

/* Is there an earlier ticket of a process that is not stopped?  *TICKET: the one to sleep on.  The
 * first time, take the file's hint (QUEUE->last) without a search: a search follows that sleep. */
static bool has_predecessor(struct queue *queue, int64_t *ticket)
{
	int64_t last = queue->last;
	struct found oldest, found;

	queue->last = 0;
	queue->search = effort_begins();
	if (!find_ticket(queue, 0, queue->ticket, &oldest))
		return false;
	*ticket = last >= oldest.first ? last : find_predecessor(queue, oldest.last);
	while (find_again(queue, *ticket, &oldest, &found) && is_stopped(queue, &found))
		*ticket = find_highest(queue, -1, found.start);
	return !queue->hostile && *ticket >= 0;
}

/* Draw a ticket: lock a byte of the queue's file.  That fails while a process that is about to
 * remove the file has all of it locked.  It removes the file at once, unless it is stopped right
 * there: so give up after two seconds, and lose the order.  (If we gave up earlier, we would lose
 * the order whenever the machine is busy, and readers could starve a writer.  Try at least 100
 * times, for the same reason: we may not have run during those two seconds.)  Returns 0, or -1 with
 * errno set. */
static int draw_ticket(struct queue *queue, const struct lock *lock, bool front,
    const struct deadline *deadline)
{
	static const struct timespec between_draws = {0, MILLISECOND / 10};
	int64_t began = clock_now(), now = began;

	for (int draws = 0; draws < 100 || now - began < 2 * SECOND; draws++) {
		queue->ticket = 2 * now + (front ? 0 : QUEUE_ORDINARY);
		if (lock_tickets(queue, F_SETLK, F_WRLCK, queue->ticket, ticket_length(queue)) ==
		    0) {
			CRASH_POINT("queue.drawn");
			/* Two processes with a ticket at the front (--replace) could both believe
			 * that they are the first: the one with the later number may lock it, and
			 * see no earlier ticket, before the other locks its own.  So if there is a
			 * later ticket at the front, draw again. */
			if (!front || !has_ticket(queue, queue->ticket + 1, QUEUE_ORDINARY))
				return 0;
			lock_tickets(queue, F_SETLK, F_UNLCK, queue->ticket, ticket_length(queue));
		} else if ((errno != EAGAIN && errno != EACCES) || deadline_left(deadline) == 0 ||
			   queuefile_check(queue->fd, lock, &queue->open) != TRUSTED) {
			break;
		}
		nanosleep(&between_draws, NULL);
		now = clock_now();
	}
	return -1;
}

/* Read the hint from the file, and write our ticket there.  The hint is the last ticket drawn, most
 * likely our predecessor's, which saves a search.  If it is too low, it costs a sleep; if it is
 * invalid, it is ignored.  Our turn comes when the kernel knows of no earlier ticket, whatever the
 * file says. */
static void exchange_hint(struct queue *queue)
{
	int64_t last = 0;

	if (pread(queue->fd, &last, sizeof last, 0) == (ssize_t)sizeof last && last < queue->ticket)
		queue->last = last;
	/* If this fails for lack of space, the next waiter must search. */
	if (queue->ticket >= QUEUE_ORDINARY)
		(void)descriptor_write(queue->fd, &queue->ticket, sizeof queue->ticket, 0);
}

/* The number of tickets in [FROM, TO), but at most MOST.  A range of bytes counts as one ticket,
 * however long it is. */
static unsigned count_tickets(struct queue *queue, int64_t from, int64_t to, unsigned most)
{
	struct found found;
	unsigned before;

	if (most == 0 || !find_ticket(queue, from, to, &found))
		return 0;
	before = count_tickets(queue, from, found.first, most - 1);
	return before + 1 + count_tickets(queue, found.last + 1, to, most - 1 - before);
}

/* Draw a ticket, if fewer than QUEUE->places others have one.  The processes that count do so one
 * after the other, with QUEUE_ADMISSION locked: if two did so at once, each could count the other's
 * ticket and give its own up, and a place would stay empty.  A process may be stopped while it has
 * that byte locked: after two seconds go on without the byte, at the risk of losing a place. */
static bool draw_place(struct queue *queue, const struct lock *lock,
    const struct deadline *deadline)
{
	int64_t left = deadline_left(deadline);
	const struct deadline patience = deadline_after(left < 2 * SECOND ? left : 2 * SECOND);
	struct error ignored;
	bool drawn;

	if (lock_tickets(queue, F_OFD_SETLK, F_WRLCK, QUEUE_ADMISSION, 1) != 0) {
		while ((left = deadline_left(&patience)) > 0 && wakeup_set(left, &ignored) == 0 &&
		       lock_tickets(queue, F_OFD_SETLKW, F_WRLCK, QUEUE_ADMISSION, 1) != 0 &&
		       errno == EINTR)
			;
		wakeup_off();
	}
	CRASH_POINT("queue.admitting");
	drawn = draw_ticket(queue, lock, false, deadline) == 0;
	queue->search = effort_begins();
	queue->full = drawn &&
	              count_tickets(queue, 0, queue->ticket, queue->places) +
	                      count_tickets(queue, queue->ticket + 1, INT64_MAX, queue->places) >=
	                  queue->places &&
	              !queue->hostile;
	if (queue->full)
		lock_tickets(queue, F_SETLK, F_UNLCK, queue->ticket, ticket_length(queue));
	lock_tickets(queue, F_OFD_SETLK, F_UNLCK, QUEUE_ADMISSION, 1);
	return drawn;
}

/* Step Q1 of tests/models: draw a ticket.  Except with --queue-max, nothing that can wait comes
 * between opening the file and drawing the ticket, because the tickets make the order.  Only
 * afterwards check whether the file may be used.  If the last process to leave has removed the file
 * before we had our ticket, draw from another file, which newcomers will find. */
bool queue_join(struct queue *queue, const struct lock *lock, bool front,
    const struct deadline *deadline)
{
	enum trust trust = REMOVED;
	bool no_tickets = false, drawn;

	if (queue->unusable)
		return false;
	CRASH_POINT("queue.joining");
	do {
		if (queue->fd < 0)
			queue->fd = queuefile_open_or_create(lock, &queue->open);
		if (queue->fd < 0) {
			trust = IS_IN_THE_WAY(errno) ? NOT_TRUSTED : TRUSTED;
			continue;
		}
		CRASH_POINT("queue.opened");
		carrier = queue->fd;
		drawn = queue->places > 0 && !front
		            ? draw_place(queue, lock, deadline)
		            : draw_ticket(queue, lock, front, deadline) == 0;
		no_tickets = !drawn && errno == EINVAL; /* this system has no record locks */
		trust = queuefile_check(queue->fd, lock, &queue->open);
		if (trust == TRUSTED && queue->full)
			return false;
		if (trust == TRUSTED && drawn) {
			exchange_hint(queue);
			queue->look_at = clock_now() + SECOND;
			queue->seen = queue->head = queue->far = -1;
			return true;
		}
	} while (trust != TRUSTED && close_to_retry(queue, lock, trust));
	if (no_tickets && trust == TRUSTED)
		queuefile_remove(lock); /* no process can use it */
	close_queue(queue);
	return false;
}

bool queue_has_waiter(struct queue *queue, const struct lock *lock)
{
	enum trust trust = queuefile_check(queue->fd, lock, &queue->open);
	struct found found;

	if (trust != TRUSTED)
		close_to_retry(queue, lock, trust);
	queue->search = effort_begins();
	return trust == TRUSTED && find_living(queue, 0, INT64_MAX, false, &found);
}

bool queue_preceded(struct queue *queue)
{
	struct found found;

	queue->search = effort_begins();
	return find_living(queue, 0, queue->ticket, false, &found);
}

bool queue_superseded(struct queue *queue)
{
	struct found found;

	if (!queue->supersedes)
		return false;
	queue->search = effort_begins();
	if (!find_living(queue, queue->ticket + 1, QUEUE_ADMISSION, true, &found))
		return false;
	queue->superseder = found.pid > 0 ? found.pid : 0;
	return true;
}

unsigned queue_place(struct queue *queue)
{
	unsigned before;

	queue->search = effort_begins();
	before = count_tickets(queue, 0, queue->ticket, UINT_MAX - 1);
	return queue->hostile ? 0 : before + 1;
}

bool queue_led_from_front(struct queue *queue)
{
	return has_ticket(queue, 0, QUEUE_ORDINARY);
}

/* Our predecessor has gone, and another waiter is before us: look soon whether that one is stopped,
 * but not in the first second after we drew our ticket.  Never move the look to a later time:
 * otherwise a process that moves its ticket could put the look off forever. */
static void look_soon(struct queue *queue)
{
	const int64_t drawn = queue->ticket % QUEUE_ORDINARY / 2;
	int64_t soon = clock_now() + SECOND / 10;

	if (soon < drawn + SECOND)
		soon = drawn + SECOND;
	if (soon < queue->look_at)
		queue->look_at = soon;
}

/* The queue's file may lose its name: a logout removes all of a user's shared memory (logind's
 * RemoveIPC), and an administrator may remove more.  Then newcomers would not find us, and readers
 * would enter past a writer.  So draw the same ticket, which is a time, from the file that
 * newcomers find, or that we create.  Only then give the old ticket up, which wakes the next in
 * line. */
bool queue_follow(struct queue *queue, const struct lock *lock)
{
	const int old = queue->fd;
	struct stat file;

	if (fstat(old, &file) != 0 || file.st_nlink > 0)
		return false;
	/* with --rm, the queue's file goes together with the lock's, which no newcomer can open */
	if (lock->id.entry == NULL && fstat(lock->fd, &file) == 0 && file.st_nlink == 0)
		return false;
	queue->fd = queuefile_open_or_create(lock, &queue->open);
	if (queue->fd >= 0 &&
	    lock_tickets(queue, F_SETLK, F_WRLCK, queue->ticket, ticket_length(queue)) == 0 &&
	    queuefile_check(queue->fd, lock, &queue->open) == TRUSTED) {
		CRASH_POINT("queue.followed");
		close(old);
		carrier = queue->fd;
		queue->seen = -1;
		return true;
	}
	if (queue->fd >= 0)
		close(queue->fd);
	queue->fd = old;
	return false;
}

/* Step Q2 of tests/models: sleep on the nearest earlier ticket of a process that is not stopped.
 * At QUEUE->look_at, look again whether that process is stopped, and whether the lock is deserted.
 * Other processes can only make that time earlier (look_soon()).  So a hostile one that moves its
 * ticket cannot make a waiter miss the look, nor keep the waiter busy, nor make it give the lock
 * back again and again. */
enum turn queue_await(struct queue *queue, const struct lock *lock, const struct deadline *deadline)
{
	static const struct timespec between_searches = {0, MILLISECOND};
	int64_t before = queue->seen, left, rest;
	struct error ignored;
	bool preceded;

	if (clock_now() >= queue->look_at) {
		queue_follow(queue, lock);
		return TURN_LOOK;
	}
	queue->seen = -1;
	for (unsigned woken = 0;; woken++, before = -1) {
		preceded = before >= 0 || has_predecessor(queue, &before);
		/* An earlier ticket may have gone because its owner has moved to the file that has
		 * the queue's name now, and not because its turn is over.  So look at the name
		 * after the search; if it means another file, move there, too, and search there for
		 * those before us. */
		if ((woken > 0 || !preceded) && queue_follow(queue, lock))
			preceded = has_predecessor(queue, &before);
		if (!preceded)
			return TURN_OURS;
		left = deadline_left(deadline);
		rest = queue->look_at - clock_now();
		if (left == 0)
			return TURN_EXPIRED;
		if (queue_superseded(queue))
			return TURN_SUPERSEDED;
		if (rest <= 0) {
			queue->seen = before;
			return TURN_LOOK;
		}
		if (queue->supersedes && rest > QUEUE_SUPERSEDED_PAUSE)
			rest = QUEUE_SUPERSEDED_PAUSE;
		if (woken % 64 == 63)
			nanosleep(&between_searches, NULL);
		/* If the system has no timer left, only a waiter with a deadline fails.  Without a
		 * deadline, a waiter merely misses its look. */
		if (wakeup_set(left < rest ? left : rest, &ignored) != 0 && !deadline->never)
			return TURN_BROKEN;
		if (lock_tickets(queue, F_OFD_SETLKW, F_RDLCK, before, 1) == 0)
			look_soon(queue);
		else if (errno == EINTR)
			queue->last = before;
		else
			return TURN_BROKEN;
	}
}

int64_t queue_pause(struct queue *queue)
{
	enum { MOST = 100 };
	int64_t last = queue->seen >= 0 ? queue->seen : queue->ticket - 1;
	int64_t from, before;
	struct found first, found;

	queue->search = effort_begins();
	if (!find_ticket(queue, 0, queue->ticket, &first))
		return SECOND;
	if (queue->far >= 0 && queue->head == first.first &&
	    find_ticket(queue, queue->far, queue->far + 1, &found))
		return MOST * SECOND;
	from = first.last + 1;
	for (before = 1;
	     before < MOST && from <= last && find_ticket(queue, from, queue->ticket, &found);
	     before++)
		from = found.last + 1;
	queue->head = first.first;
	queue->far = before == MOST ? found.first : -1;
	return before * SECOND;
}

/* Step Q4 of tests/models: give the ticket up, by closing the file.  First drop the locks that we
 * got on the tickets that we slept on: a command at its start barrier, or a placeholder, has a copy
 * of the descriptor, and would keep these locks. */
void queue_leave(struct queue *queue, const struct lock *lock)
{
	if (queue->fd >= 0 && queue->ticket != 0) {
		lock_tickets(queue, F_OFD_SETLK, F_UNLCK, 0, 0);
		/* If no other process has a ticket, this locks the whole file, and nobody can draw
		 * a ticket until we close it.  Remove the file only if it still has its name: if it
		 * was removed together with the lock's file, the name may belong to another queue
		 * by now. */
		if (lock_tickets(queue, F_SETLK, F_WRLCK, 0, 0) == 0 &&
		    queuefile_check(queue->fd, lock, &queue->open) == TRUSTED) {
			CRASH_POINT("queue.alone");
			queuefile_remove(lock);
		}
	}
	close_queue(queue);
}

/* ---- for --who ---- */

enum { TICKETS_MOST = 4096 };

void tickets_add(struct tickets *tickets, int64_t number, pid_t pid)
{
	size_t i = tickets->count;

	if (tickets->list == NULL)
		tickets->list = calloc(TICKETS_MOST, sizeof *tickets->list);
	tickets->failed = tickets->list == NULL;
	while (i > 0 && tickets->list[i - 1].number > number)
		i--;
	if (tickets->failed || tickets->count == TICKETS_MOST || number >= QUEUE_ADMISSION ||
	    (i > 0 && tickets->list[i - 1].number == number))
		return;
	memmove(&tickets->list[i + 1], &tickets->list[i],
	    (tickets->count - i) * sizeof *tickets->list);
	tickets->list[i] = (struct ticket){number, pid, false};
	tickets->count++;
}

/* Add the tickets in [FROM, TO) of the file FD to TICKETS.  The kernel returns first the ticket
 * that was drawn first, which is mostly the one with the lowest number: so DEPTH, of the recursion,
 * stays low. */
static void list_tickets(struct tickets *tickets, int fd, int64_t from, int64_t to, size_t depth,
    struct allowance *limit)
{
	struct flock probe;

	while (from < to && tickets->count + depth < TICKETS_MOST && !allowance_spent(limit)) {
		probe = (struct flock){
		    .l_type = F_RDLCK,
		    .l_whence = SEEK_SET,
		    .l_start = (off_t)from,
		    .l_len = (off_t)(to - from),
		};
		/* F_GETLK would leave out our own tickets */
		if (fcntl(fd, F_OFD_GETLK, &probe) != 0 || probe.l_type == F_UNLCK)
			return;
		list_tickets(tickets, fd, from, probe.l_start, depth + 1, limit);
		if (probe.l_len == 1 || probe.l_len == 2)
			tickets_add(tickets, probe.l_start, probe.l_pid > 0 ? probe.l_pid : 0);
		from = probe.l_len > 0 ? probe.l_start + probe.l_len : to;
	}
}

int queue_list(struct tickets *tickets, const char path[QUEUE_PATH_SIZE], struct allowance *limit)
{
	int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat file, ours;
	bool is_ours;

	*tickets = (struct tickets){0};
	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	/* In a child that has closed its descriptors, FD may have the carrier's number. */
	is_ours = carrier >= 0 && carrier != fd && fstat(carrier, &ours) == 0 &&
	          fstat(fd, &file) == 0 && same_file(identity_of(&ours), identity_of(&file));
	close(fd);
	fd = is_ours ? carrier : open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	list_tickets(tickets, fd, 0, QUEUE_ADMISSION, 0, limit);
	if (!is_ours)
		close(fd);
	for (size_t i = 0; i < tickets->count && !process_numbers_ours(); i++)
		tickets->list[i].pid = 0;
	return 0;
}

bool tickets_include(const struct tickets *tickets, pid_t pid)
{
	for (size_t i = 0; i < tickets->count; i++)
		if (tickets->list[i].pid == pid)
			return true;
	return false;
}
