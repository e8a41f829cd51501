/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "lock/queue.h"
#include "sys/crash_points.h"
#include "sys/files.h"
#include "sys/signals.h"

static void close_queue(struct queue *queue)
{
	if (queue->fd >= 0)
		close(queue->fd);
	queue->fd = -1;
}

/* Something else than a file has the queue's name. */
#define IS_IN_THE_WAY(errnum) ((errnum) == ELOOP || (errnum) == EISDIR || (errnum) == ENXIO)

/* Remove what has the queue's name, once, if that is permitted: the next open finds or makes
 * another file. */
static bool clear_name(struct queue *queue, const struct lock *lock)
{
	if (queue->cleared || queuefile_clear(lock) != 0)
		return false;
	queue->cleared = true;
	return true;
}

/* Before our check, the last process to leave may have removed a trusted file: treating that as
 * unusable would let readers starve a writer. */
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

/* LENGTH 0: to the end. */
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

struct found {
	int64_t first, last; /* bytes: a process may lock many at once */
};

/* Each call walks through all tickets.  A search that uses more processor time than this is a
 * hostile process's doing: without tickets, fall back to the kernel's order. */
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

	if (from >= to || queue->hostile || fcntl(queue->fd, F_OFD_GETLK, &probe) != 0 ||
	    probe.l_type == F_UNLCK)
		return false;
	queue->hostile = effort_exceeds(&queue->search, SEARCH_LIMIT);
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

/* The highest ticket in (LOW, HIGH), or LOW: by halving. */
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

/* The nearest ticket before ours, not before OLDEST.  It is usually close to ours, because tickets
 * drawn at the same moment are close together: look there first. */
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

/* Is there a ticket before ours?  *TICKET: the one to sleep on.  The first time, the file's hint
 * will do: after that sleep comes another search. */
static bool has_predecessor(struct queue *queue, int64_t *ticket)
{
	int64_t last = queue->last;
	struct found oldest;

	queue->last = 0;
	queue->search = effort_begins();
	if (!find_ticket(queue, 0, queue->ticket, &oldest))
		return false;
	*ticket = last >= oldest.first ? last : find_predecessor(queue, oldest.last);
	return !queue->hostile;
}

/* The process that removes the file locks the whole of it, which takes no time, unless that process
 * is stopped right there: then we give up after two seconds, and lose the order.  (Giving up
 * earlier would lose the order whenever the machine is busy, and readers could starve a writer. For
 * the same reason one draw and two seconds in which we did not run are not enough.)  Tickets are
 * even: between any two there is room for one more. */
static int draw_ticket(struct queue *queue, const struct lock *lock, bool front,
    const struct deadline *deadline)
{
	static const struct timespec between_draws = {0, MILLISECOND / 10};
	int64_t began = clock_now(), now = began;

	for (int draws = 0; draws < 100 || now - began < 2 * SECOND; draws++) {
		queue->ticket = 2 * now + (front ? 0 : QUEUE_ORDINARY);
		if (lock_tickets(queue, F_OFD_SETLK, F_WRLCK, queue->ticket, 1) == 0) {
			CRASH_POINT("queue.drawn");
			/* Two replacers that read the same time could both take themselves for the
			 * first: if there is a later ticket of their kind, each of them draws
			 * again. */
			if (!front || !has_ticket(queue, queue->ticket + 1, QUEUE_ORDINARY))
				return 0;
			lock_tickets(queue, F_OFD_SETLK, F_UNLCK, queue->ticket, 1);
		} else if ((errno != EAGAIN && errno != EACCES) || deadline_left(deadline) == 0 ||
			   queuefile_check(queue->fd, lock, &queue->open) != TRUSTED) {
			break;
		}
		nanosleep(&between_draws, NULL);
		now = clock_now();
	}
	return -1;
}

/* The file holds the last ticket drawn: most likely our predecessor, found without a search.  It is
 * only a hint: if too low, it costs a sleep; if it makes no sense, it is ignored.  It is our turn
 * when the kernel knows of no earlier ticket, whatever the file says. */
static void exchange_hint(struct queue *queue)
{
	int64_t last = 0;

	if (pread(queue->fd, &last, sizeof last, 0) == (ssize_t)sizeof last && last < queue->ticket)
		queue->last = last;
	/* If this fails, for want of room, the next waiter has to search. */
	if (queue->ticket >= QUEUE_ORDINARY)
		(void)descriptor_write(queue->fd, &queue->ticket, sizeof queue->ticket, 0);
}

/* The number of tickets in [FROM, TO), or MOST if there are more.  A range is one, however long. */
static unsigned count_tickets(struct queue *queue, int64_t from, int64_t to, unsigned most)
{
	struct found found;
	unsigned before;

	if (most == 0 || !find_ticket(queue, from, to, &found))
		return 0;
	before = count_tickets(queue, from, found.first, most - 1);
	return before + 1 + count_tickets(queue, found.last + 1, to, most - 1 - before);
}

/* Draw a ticket as one of at most queue->places.  Those that are counted draw and count one after
 * the other: if two did so at once, each could count the ticket of the other, which is then
 * refused, and a place would stay empty. Others may be stopped right there: then go on without the
 * byte after two seconds, in which a place may be lost. */
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
		lock_tickets(queue, F_OFD_SETLK, F_UNLCK, queue->ticket, 1);
	lock_tickets(queue, F_OFD_SETLK, F_UNLCK, QUEUE_ADMISSION, 1);
	return drawn;
}

/* Q1: draw a ticket.  Nothing that can wait, but for --queue-max, stands between the open and the
 * ticket, which makes the order.  Whether the file may be used is looked at afterwards: and the
 * last process to leave may have removed it before we had our ticket.  Then draw from another one,
 * which newcomers will find. */
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
		drawn = queue->places > 0 && !front
		            ? draw_place(queue, lock, deadline)
		            : draw_ticket(queue, lock, front, deadline) == 0;
		no_tickets = !drawn && errno == EINVAL; /* the system has no OFD locks */
		trust = queuefile_check(queue->fd, lock, &queue->open);
		if (trust == TRUSTED && queue->full)
			return false;
		if (trust == TRUSTED && drawn) {
			exchange_hint(queue);
			queue->check_at = clock_now() + SECOND;
			return true;
		}
	} while (trust != TRUSTED && close_to_retry(queue, lock, trust));
	if (no_tickets && trust == TRUSTED)
		queuefile_remove(lock); /* it is of use to no process */
	close_queue(queue);
	return false;
}

bool queue_has_waiter(struct queue *queue, const struct lock *lock)
{
	enum trust trust = queuefile_check(queue->fd, lock, &queue->open);

	if (trust != TRUSTED)
		close_to_retry(queue, lock, trust);
	return trust == TRUSTED && has_ticket(queue, 0, INT64_MAX);
}

bool queue_preceded(struct queue *queue)
{
	return has_ticket(queue, 0, queue->ticket);
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

/* Q2: sleep on the nearest earlier ticket.  The clock decides when to check the lock itself: a
 * hostile process that moves its ticket can neither make a waiter miss that check, nor keep it
 * busy, nor have it give the lock back again and again. */
enum turn queue_await(struct queue *queue, const struct deadline *deadline)
{
	static const struct timespec between_searches = {0, MILLISECOND};
	struct error ignored;
	int64_t before, left, check;

	if (clock_now() >= queue->check_at)
		return TURN_CHECK;
	for (unsigned woken = 1; has_predecessor(queue, &before); woken++) {
		left = deadline_left(deadline);
		check = queue->check_at - clock_now();
		if (left == 0)
			return TURN_EXPIRED;
		if (check <= 0) {
			/* a search by thousands each second would use up the CPU */
			queue->last = before;
			return TURN_CHECK;
		}
		if (woken % 64 == 0)
			nanosleep(&between_searches, NULL);
		/* If the system has no timer left, a waiter without a deadline only misses its
		 * check. */
		if (wakeup_set(left < check ? left : check, &ignored) != 0 && !deadline->never)
			return TURN_BROKEN;
		if (lock_tickets(queue, F_OFD_SETLKW, F_RDLCK, before, 1) == 0)
			continue;
		if (errno != EINTR)
			return TURN_BROKEN;
		queue->last = before;
	}
	return TURN_OURS;
}

/* Q4: give the ticket up.  Unlock it, for a close is not enough: a command at its start barrier, or
 * a placeholder, has a copy of the descriptor. */
void queue_leave(struct queue *queue, const struct lock *lock)
{
	if (queue->fd >= 0 && queue->ticket != 0) {
		/* If no other process has a ticket, the whole file is locked, and none can be drawn
		 * until we unlock it. If the file was removed meanwhile, with the lock's file, its
		 * name may be that of another queue. */
		if (lock_tickets(queue, F_OFD_SETLK, F_WRLCK, 0, 0) == 0 &&
		    queuefile_check(queue->fd, lock, &queue->open) == TRUSTED) {
			CRASH_POINT("queue.alone");
			queuefile_remove(lock);
		}
		lock_tickets(queue, F_OFD_SETLK, F_UNLCK, 0, 0);
	}
	close_queue(queue);
}
