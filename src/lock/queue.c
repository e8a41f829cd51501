#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "sys/wakeup.h"
#include "sys/crash_points.h"
#include "sys/descriptor.h"
#include "lock/lock.h"
#include "lock/queue.h"
#include "lock/queuefile.h"

static void close_file(struct queue *queue)
{
	if (queue->fd >= 0)
		close(queue->fd);
	queue->fd = -1;
}

static enum trust look_at_opened(const struct queue *queue, const struct lock *lock)
{
	CRASH_POINT("queue.opened");
	return queuefile_look(queue->fd, lock);
}

/* A file that is not to be trusted is removed if that is permitted, once: then the next open makes
 * or finds another.  Until our look, the last to leave may have removed a trusted one: to take that
 * for a queue that cannot be used would mean to wait outside of it, among readers for ever. */
static bool open_again(struct queue *queue, const struct lock *lock, enum trust trust)
{
	close_file(queue);
	if (trust == REMOVED)
		return true;
	if (queue->cleared || queuefile_remove(lock) != 0)
		return false;
	queue->cleared = true;
	return true;
}

enum queue_state queue_open(struct queue *queue, const struct lock *lock)
{
	enum trust trust;

	*queue = (struct queue){.fd = -1};
	do {
		queue->fd = queuefile_open(lock);
		if (queue->fd < 0)
			return errno == ENOENT ? QUEUE_ABSENT : QUEUE_UNUSABLE;
		trust = look_at_opened(queue, lock);
		if (trust == TRUSTED)
			return QUEUE_OPEN;
	} while (open_again(queue, lock, trust));
	return QUEUE_UNUSABLE;
}

static int lock_byte(int fd, int command, short type, int64_t at)
{
	struct flock byte = {
	    .l_type = type,
	    .l_whence = SEEK_SET,
	    .l_start = (off_t)at,
	    .l_len = 1,
	};

	return fcntl(fd, command, &byte);
}

/* Is there a ticket in [FROM, TO)?  Which one, when there are several, is for the
 * kernel to say; it names the one whose drawer has been there longest. */
static bool find(const struct queue *queue, int64_t from, int64_t to, int64_t *ticket)
{
	struct flock probe = {
	    .l_type = F_RDLCK,
	    .l_whence = SEEK_SET,
	    .l_start = (off_t)from,
	    .l_len = (off_t)(to - from),
	};

	if (from >= to || fcntl(queue->fd, F_OFD_GETLK, &probe) != 0 || probe.l_type == F_UNLCK)
		return false;
	*ticket = probe.l_start > from ? probe.l_start : from;
	return true;
}

/* The highest ticket in (LOW, HIGH), or LOW: by halving. */
static int64_t highest(const struct queue *queue, int64_t low, int64_t high)
{
	int64_t found, middle;

	while (low + 1 < high && find(queue, low + 1, high, &found)) {
		low = found;
		middle = low + (high - low) / 2;
		if (middle <= low)
			continue;
		if (find(queue, middle, high, &found))
			low = found;
		else
			high = middle;
	}
	return low;
}

/* The nearest ticket before ours after OLDEST.  Tickets drawn at the same moment stand close
 * together, and the nearest one usually stands close to ours: look there first. */
static int64_t search(const struct queue *queue, int64_t oldest)
{
	int64_t window, found;

	for (window = 4 * MILLISECOND; window < queue->ticket - oldest && window < QUEUE_ORDINARY / 8;
	     window *= 8)
		if (find(queue, queue->ticket - window, queue->ticket, &found))
			return highest(queue, found, queue->ticket);
	return highest(queue, oldest, queue->ticket);
}

/* Is anybody before us, and behind whom are we to sleep?  The first time that need not be exact,
 * for when he is gone we look again: what the file says will do. */
static bool one_before(struct queue *queue, int64_t *ticket)
{
	int64_t oldest, last = queue->last;

	queue->last = 0;
	if (!find(queue, 0, queue->ticket, &oldest))
		return false;
	*ticket = last >= oldest ? last : search(queue, oldest);
	return true;
}

/* Two replacers that read the same clock at the same time could both take themselves for the first:
 * the one that finds a later ticket of that kind than its own draws again. */
static bool is_last_in_front(const struct queue *queue)
{
	int64_t later;

	return !find(queue, queue->ticket + 1, QUEUE_ORDINARY, &later);
}

/* An even number, so that between any two there is room for one more.  The whole file is locked
 * by whoever is about to remove it, which takes no time, unless it is stopped right there: that
 * may cost the order, but not hold anybody up for long.  (To give up early would cost the order
 * whenever the machine is busy, and a writer then may never get in among readers.) */
static int draw(struct queue *queue, bool front, const struct deadline *deadline)
{
	static const struct timespec a_moment = {0, MILLISECOND / 10};
	int64_t began = clock_now(), now = began;

	while (now - began < 2 * SECOND) {
		queue->ticket = 2 * now + (front ? 0 : QUEUE_ORDINARY);
		if (lock_byte(queue->fd, F_OFD_SETLK, F_WRLCK, queue->ticket) == 0) {
			CRASH_POINT("queue.drawn");
			if (!front || is_last_in_front(queue))
				return 0;
			lock_byte(queue->fd, F_OFD_SETLK, F_UNLCK, queue->ticket);
		} else if ((errno != EAGAIN && errno != EACCES) || deadline_left(deadline) == 0) {
			break;
		}
		nanosleep(&a_moment, NULL);
		now = clock_now();
	}
	return -1;
}

/* The file says which ticket was drawn last: most likely the one before ours, and found without
 * a search.  Nobody believes it.  What is too low costs a sleep, what makes no sense is passed
 * over, and it is our turn when the kernel knows of no earlier ticket, whatever the file says. */
static void note_last(struct queue *queue)
{
	int64_t last = 0;

	if (pread(queue->fd, &last, sizeof last, 0) == (ssize_t)sizeof last && last < queue->ticket)
		queue->last = last;
	/* No room, or none that we may have: whoever comes next has to search. */
	if (queue->ticket >= QUEUE_ORDINARY)
		(void)descriptor_write(queue->fd, &queue->ticket, sizeof queue->ticket, 0);
}

/* Until we had our ticket, the last of the others may have removed the file under us:
 * then there is another one to draw from, where the next ones will look. */
bool queue_join(struct queue *queue, const struct lock *lock, bool front,
    const struct deadline *deadline)
{
	enum trust trust;

	CRASH_POINT("queue.joining");
	do {
		trust = TRUSTED;
		if (queue->fd < 0) {
			queue->fd = queuefile_open_or_create(lock);
			if (queue->fd < 0)
				return false;
			trust = look_at_opened(queue, lock);
		}
		if (trust == TRUSTED && draw(queue, front, deadline) != 0) {
			close_file(queue);
			return false;
		}
		if (trust == TRUSTED)
			trust = queuefile_look(queue->fd, lock);
		if (trust == TRUSTED) {
			note_last(queue);
			queue->look_at = clock_now() + SECOND;
			return true;
		}
	} while (open_again(queue, lock, trust));
	return false;
}

bool queue_empty(const struct queue *queue)
{
	int64_t ticket;

	return !find(queue, 0, INT64_MAX, &ticket);
}

bool queue_preceded(const struct queue *queue)
{
	int64_t ticket;

	return find(queue, 0, queue->ticket, &ticket);
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* By the clock, whatever the tickets do: a hostile process can move one as it likes, but it cannot
 * make a waiter miss its look at the lock, or keep it busy. */
enum turn queue_await(struct queue *queue, const struct deadline *deadline)
{
	static const struct timespec a_moment = {0, MILLISECOND};
	struct error ignored;
	int64_t before, left, look;

	for (unsigned woken = 1; one_before(queue, &before); woken++) {
		left = deadline_left(deadline);
		look = queue->look_at - clock_now();
		if (left == 0)
			return TURN_EXPIRED;
		if (look <= 0)
			return TURN_LOOK;
		if (woken % 64 == 0)
			nanosleep(&a_moment, NULL);
		/* Without a time limit, a system that has no timer left costs no more than the look
		 * at the lock. */
		if (alarm_set(smaller(left, look), &ignored) != 0 && !deadline->never)
			return TURN_BROKEN;
		if (lock_byte(queue->fd, F_OFD_SETLKW, F_RDLCK, before) == 0)
			continue;
		if (errno != EINTR)
			return TURN_BROKEN;
		queue->last = before; /* thousands that search once a second would leave no time to run */
	}
	return TURN_OURS;
}

static bool lock_all(const struct queue *queue, short type)
{
	struct flock all = {.l_type = type, .l_whence = SEEK_SET};

	return fcntl(queue->fd, F_OFD_SETLK, &all) == 0;
}

/* Is nobody else in the queue?  If so, nobody can get in until we let go of it: the whole of it is
 * ours.  Of one that was removed under us, with its lock's file, the name may be another's. */
static bool last_to_leave(const struct queue *queue, const struct lock *lock)
{
	return lock_all(queue, F_WRLCK) && queuefile_look(queue->fd, lock) == TRUSTED;
}

/* To close it would not do: a command that is at its gate, or stands in for one, has a copy. */
void queue_leave(struct queue *queue, const struct lock *lock)
{
	if (queue->fd >= 0 && queue->ticket != 0) {
		if (last_to_leave(queue, lock)) {
			CRASH_POINT("queue.alone");
			queue_remove(lock);
		}
		lock_all(queue, F_UNLCK);
	}
	close_file(queue);
}

void queue_remove(const struct lock *lock)
{
	queuefile_remove(lock);
}

