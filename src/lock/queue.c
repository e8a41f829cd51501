/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lock/queue.h"
#include "sys/memory.h"
#include "sys/crash_points.h"
#include "sys/descriptor.h"
#include "sys/wakeup.h"

/* ---- its file ---- */

enum trust {
	TRUSTED,
	REMOVED, /* trusted, but without a name: newcomers do not find it */
	NOT_TRUSTED
};

/* Not inherited: a ticket must end with its owner. */
#define QUEUE_FLAGS (O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)

/* Two locks made of files whose names have one hash share a queue, which costs order only. */
static uint64_t hash_of(const char *name)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (; *name != '\0'; name++)
		hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
	return hash;
}

/* In the directory of shm_open(), which itself makes more system calls. */
void queuefile_path(const struct lock *lock, char path[QUEUE_PATH_SIZE])
{
	char *at = stpcpy(path, QUEUE_DIRECTORY "/semlock-");

	at = stpcpy(text_hex(at, (unsigned long long)lock->id.device), "-");
	at = text_hex(at, (unsigned long long)lock->id.inode);
	if (lock->id.entry != NULL)
		text_hex(stpcpy(at, "-"), (unsigned long long)hash_of(lock->id.entry));
}

/* The processes that can open a lock, and so its queue: of all users (0666), of GROUP (0660), or of the
 * lock's owner (0600). */
struct openness {
	mode_t mode;
	gid_t group;
};

/* Reduce OPEN to the processes that can pass DIRECTORY. */
static void narrow(struct openness *open, const struct stat *directory)
{
	bool others = (directory->st_mode & S_IXOTH) != 0;
	bool members = (directory->st_mode & S_IXGRP) != 0;

	if (open->mode == 0666 && !others)
		*open = (struct openness){members ? 0660 : 0600, directory->st_gid};
	else if (open->mode == 0660 && !(directory->st_gid == open->group ? members : others))
		open->mode = 0600;
}

/* The path of the lock, or of its directory, as the kernel knows it; false: none leads there. */
static bool find_path(const struct lock *lock, char path[PATH_MAX])
{
	char self[32];
	struct stat found;
	ssize_t length;

	snprintf(self, sizeof self, "/proc/self/fd/%d", lock->id.entry != NULL ? lock->directory : lock->fd);
	length = readlink(self, path, PATH_MAX - 1);
	if (length <= 0)
		return false;
	path[length] = '\0';
	return path[0] == '/' && stat(path, &found) == 0 && found.st_dev == lock->id.device &&
	       found.st_ino == lock->id.inode;
}

/* Q7 */
static struct openness openness_of(const struct lock *lock)
{
	struct openness open = {0600, lock->id.group};
	char path[PATH_MAX], *slash;
	struct stat directory;

	if ((lock->id.permissions & (S_IROTH | S_IWOTH)) != 0)
		open.mode = 0666;
	else if ((lock->id.permissions & (S_IRGRP | S_IWGRP)) != 0)
		open.mode = 0660;
	if (open.mode != 0600 && !find_path(lock, path))
		open.mode = 0600;
	while (open.mode != 0600 && (slash = strrchr(path, '/')) != NULL) {
		*slash = '\0';
		if (stat(slash == path ? "/" : path, &directory) != 0)
			open.mode = 0600;
		else
			narrow(&open, &directory);
	}
	return open;
}

/* A process that can open the queue, but not the lock, could delay the waiters. */
static bool is_wider(const struct stat *file, const struct openness *open)
{
	if (open->mode == 0666)
		return false;
	return (file->st_mode & S_IRWXO) != 0 ||
	       ((file->st_mode & S_IRWXG) != 0 && (open->mode != 0660 || file->st_gid != open->group));
}

/* Only a member of a group, or root, can give a file to it. */
static bool is_made_by_ours(const struct stat *file, const struct lock *lock, const struct openness *open)
{
	return file->st_uid == 0 || file->st_uid == lock->id.owner || file->st_uid == geteuid() ||
	       open->mode == 0666 || (open->mode == 0660 && file->st_gid == open->group);
}

/* Q8 */
static enum trust queuefile_check(int fd, const struct lock *lock)
{
	struct openness open = openness_of(lock);
	struct stat file;

	if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode) || file.st_nlink > 1 ||
	    is_wider(&file, &open) || !is_made_by_ours(&file, lock, &open))
		return NOT_TRUSTED;
	return file.st_nlink == 1 ? TRUSTED : REMOVED;
}

static int open_queuefile(const char *path, int flags)
{
	return openat(AT_FDCWD, path, QUEUE_FLAGS | flags, 0600);
}

/* Root gives the queue to the lock's owner, which then can remove it. */
static int set_mode(int fd, const struct lock *lock)
{
	struct openness open;

	if (fd < 0)
		return -1;
	open = openness_of(lock);
	if (open.mode == 0660 && fchown(fd, (uid_t)-1, open.group) != 0)
		open.mode = 0600;
	if (geteuid() == 0) /* a queue that stays root's is trusted as well */
		(void)!fchown(fd, lock->id.owner, (gid_t)-1);
	if (fchmod(fd, open.mode) == 0)
		return fd;
	close(fd);
	return -1;
}

/* The file gets its mode before its name: a user that cannot open it yet would wait outside of the queue,
 * and if we died in between, no other user could ever open it. */
static int create_queuefile(const char *path, const struct lock *lock)
{
	int fd = set_mode(open_queuefile(QUEUE_DIRECTORY, O_TMPFILE), lock), errnum;
	char self[32];

	if (fd >= 0) {
		snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
		if (linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0)
			return fd;
		errnum = errno;
		close(fd);
		errno = errnum;
		if (errnum == EEXIST)
			return -1;
	}
	return set_mode(open_queuefile(path, O_CREAT | O_EXCL), lock);
}

static int queuefile_open_or_create(const struct lock *lock)
{
	char path[QUEUE_PATH_SIZE];
	int fd;

	queuefile_path(lock, path);
	do { /* between the two, another waiter may make it, or the last one remove it */
		fd = open_queuefile(path, 0);
		if (fd < 0 && errno == ENOENT)
			fd = create_queuefile(path, lock);
	} while (fd < 0 && errno == EEXIST);
	return descriptor_above_standard(fd);
}

int queuefile_remove(const struct lock *lock)
{
	char path[QUEUE_PATH_SIZE];

	queuefile_path(lock, path);
	return unlink(path);
}

/* ---- its tickets ---- */

static void close_queue(struct queue *queue)
{
	if (queue->fd >= 0)
		close(queue->fd);
	queue->fd = -1;
}

static enum trust check_opened(const struct queue *queue, const struct lock *lock)
{
	CRASH_POINT("queue.opened");
	return queuefile_check(queue->fd, lock);
}

/* A file that cannot be trusted is removed, once, if that is permitted: the next open finds or makes
 * another.  Before our check, the last process to leave may have removed a trusted one: treating this as
 * unusable would let readers starve a writer. */
static bool close_to_retry(struct queue *queue, const struct lock *lock, enum trust trust)
{
	close_queue(queue);
	if (trust == REMOVED)
		return true;
	if (queue->cleared || queuefile_remove(lock) != 0)
		return false;
	queue->cleared = true;
	return true;
}

void queue_open(struct queue *queue, const struct lock *lock)
{
	char path[QUEUE_PATH_SIZE];
	enum trust trust;

	queuefile_path(lock, path);
	while ((queue->fd = descriptor_above_standard(openat(AT_FDCWD, path, QUEUE_FLAGS))) >= 0) {
		trust = check_opened(queue, lock);
		if (trust == TRUSTED)
			return;
		queue->unusable = !close_to_retry(queue, lock, trust);
		if (queue->unusable)
			return;
	}
	queue->unusable = errno != ENOENT;
}

/* LENGTH 0: to the end. */
static int lock_tickets(const struct queue *queue, int command, short type, int64_t at, off_t length)
{
	struct flock bytes = {
	    .l_type = type,
	    .l_whence = SEEK_SET,
	    .l_start = (off_t)at,
	    .l_len = length,
	};

	return fcntl(queue->fd, command, &bytes);
}

/* Is there a ticket in [FROM, TO)?  Of several, the kernel gives the one that was locked first. */
static bool find_ticket(const struct queue *queue, int64_t from, int64_t to, int64_t *ticket)
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
static int64_t find_highest(const struct queue *queue, int64_t low, int64_t high)
{
	int64_t found, middle;

	while (low + 1 < high && find_ticket(queue, low + 1, high, &found)) {
		low = found;
		middle = low + (high - low) / 2;
		if (middle <= low)
			continue;
		if (find_ticket(queue, middle, high, &found))
			low = found;
		else
			high = middle;
	}
	return low;
}

/* The nearest ticket before ours, not before OLDEST.  It is usually close to ours, because tickets drawn
 * at the same moment are close together: look there first. */
static int64_t find_predecessor(const struct queue *queue, int64_t oldest)
{
	int64_t window, found;

	for (window = 4 * MILLISECOND; window < queue->ticket - oldest && window < QUEUE_ORDINARY / 8;
	     window *= 8)
		if (find_ticket(queue, queue->ticket - window, queue->ticket, &found))
			return find_highest(queue, found, queue->ticket);
	return find_highest(queue, oldest, queue->ticket);
}

/* Is there a ticket before ours?  *TICKET: the one to sleep on.  The first time, the file's hint will do:
 * after that sleep comes another search. */
static bool has_predecessor(struct queue *queue, int64_t *ticket)
{
	int64_t oldest, last = queue->last;

	queue->last = 0;
	if (!find_ticket(queue, 0, queue->ticket, &oldest))
		return false;
	*ticket = last >= oldest ? last : find_predecessor(queue, oldest);
	return true;
}

/* Two replacers that read the same time could both take themselves for the first, and two counted waiters
 * for the one that gets the last place: if there is a later ticket of its kind, each of them draws again. */
static bool is_last_drawn(const struct queue *queue, bool front)
{
	int64_t later;

	return !find_ticket(queue, queue->ticket + 1, front ? QUEUE_ORDINARY : INT64_MAX, &later);
}

/* The process that removes the file locks the whole of it, which takes no time, unless that process is
 * stopped right there: then we give up after two seconds, and lose the order.  (Giving up earlier would
 * lose the order whenever the machine is busy, and readers could starve a writer.  For the same reason one
 * draw and two seconds in which we did not run are not enough.)
 * Tickets are even: between any two there is room for one more. */
static int draw_ticket(struct queue *queue, bool front, const struct deadline *deadline)
{
	static const struct timespec a_moment = {0, MILLISECOND / 10};
	int64_t began = clock_now(), now = began;

	for (int draws = 0; draws < 100 || now - began < 2 * SECOND; draws++) {
		queue->ticket = 2 * now + (front ? 0 : QUEUE_ORDINARY);
		if (lock_tickets(queue, F_OFD_SETLK, F_WRLCK, queue->ticket, 1) == 0) {
			CRASH_POINT("queue.drawn");
			if ((!front && !queue->counted) || is_last_drawn(queue, front))
				return 0;
			lock_tickets(queue, F_OFD_SETLK, F_UNLCK, queue->ticket, 1);
		} else if ((errno != EAGAIN && errno != EACCES) || deadline_left(deadline) == 0) {
			break;
		}
		nanosleep(&a_moment, NULL);
		now = clock_now();
	}
	return -1;
}

/* The file holds the last ticket drawn: most likely our predecessor, found without a search.  It is only
 * a hint: if too low, it costs a sleep; if it makes no sense, it is ignored.  It is our turn when the
 * kernel knows of no earlier ticket, whatever the file says. */
static void exchange_hint(struct queue *queue)
{
	int64_t last = 0;

	if (pread(queue->fd, &last, sizeof last, 0) == (ssize_t)sizeof last && last < queue->ticket)
		queue->last = last;
	/* If this fails, for want of room, the next waiter has to search. */
	if (queue->ticket >= QUEUE_ORDINARY)
		(void)descriptor_write(queue->fd, &queue->ticket, sizeof queue->ticket, 0);
}

/* Q1.  Before we had our ticket, the last process to leave may have removed the file: then draw from another
 * one, which newcomers will find. */
bool queue_join(struct queue *queue, const struct lock *lock, bool front,
    const struct deadline *deadline)
{
	enum trust trust;

	if (queue->unusable)
		return false;
	CRASH_POINT("queue.joining");
	do {
		trust = TRUSTED;
		if (queue->fd < 0) {
			queue->fd = queuefile_open_or_create(lock);
			if (queue->fd < 0)
				return false;
			trust = check_opened(queue, lock);
		}
		if (trust == TRUSTED && draw_ticket(queue, front, deadline) != 0) {
			close_queue(queue);
			return false;
		}
		if (trust == TRUSTED)
			trust = queuefile_check(queue->fd, lock);
		if (trust == TRUSTED) {
			exchange_hint(queue);
			queue->look_at = clock_now() + SECOND;
			return true;
		}
	} while (close_to_retry(queue, lock, trust));
	return false;
}

bool queue_empty(const struct queue *queue)
{
	int64_t ticket;

	return !find_ticket(queue, 0, INT64_MAX, &ticket);
}

bool queue_preceded(const struct queue *queue)
{
	int64_t ticket;

	return find_ticket(queue, 0, queue->ticket, &ticket);
}

/* The number of tickets in [FROM, TO), or MOST if there are more. */
static unsigned count_tickets(const struct queue *queue, int64_t from, int64_t to, unsigned most)
{
	int64_t found;
	unsigned before;

	if (most == 0 || !find_ticket(queue, from, to, &found))
		return 0;
	before = count_tickets(queue, from, found, most - 1);
	return before + 1 + count_tickets(queue, found + 1, to, most - 1 - before);
}

/* A process that draws again has, for a moment, an earlier ticket than its last one: look twice. */
bool queue_full(const struct queue *queue, unsigned most)
{
	static const struct timespec a_moment = {0, MILLISECOND};

	if (count_tickets(queue, 0, queue->ticket, most) < most)
		return false;
	nanosleep(&a_moment, NULL);
	return count_tickets(queue, 0, queue->ticket, most) >= most;
}

/* Q2.  The clock decides: a hostile process that moves its ticket can neither make a waiter miss its look at
 * the lock, nor keep it busy, nor have it give the lock back again and again. */
enum turn queue_await(struct queue *queue, const struct lock *lock, const struct wait_options *wait)
{
	static const struct timespec a_moment = {0, MILLISECOND};
	struct error ignored;
	int64_t before, left, look;

	if (clock_now() >= queue->look_at)
		return TURN_LOOK;
	for (unsigned woken = 1; has_predecessor(queue, &before); woken++) {
		left = wait_left(lock, wait);
		look = queue->look_at - clock_now();
		if (deadline_left(&wait->deadline) == 0)
			return TURN_EXPIRED;
		if (look <= 0)
			return TURN_LOOK;
		if (woken % 64 == 0)
			nanosleep(&a_moment, NULL);
		/* If the system has no timer left, a waiter without a deadline only misses its look. */
		if (wakeup_set(left < look ? left : look, &ignored) != 0 && !wait->deadline.never)
			return TURN_BROKEN;
		if (lock_tickets(queue, F_OFD_SETLKW, F_RDLCK, before, 1) == 0)
			continue;
		if (errno != EINTR)
			return TURN_BROKEN;
		queue->last = before; /* a search by thousands each second would use up the CPU */
	}
	return TURN_OURS;
}

/* If no other process has a ticket, the whole file is locked, and none can be drawn until we unlock it.
 * If the file was removed meanwhile, with the lock's file, its name may be that of another queue. */
static bool is_last(const struct queue *queue, const struct lock *lock)
{
	return lock_tickets(queue, F_OFD_SETLK, F_WRLCK, 0, 0) == 0 && queuefile_check(queue->fd, lock) == TRUSTED;
}

/* Q4.  Unlock it, for a close is not enough: a command at its start barrier, or a placeholder, has a copy of
 * the descriptor. */
void queue_leave(struct queue *queue, const struct lock *lock)
{
	if (queue->fd >= 0 && queue->ticket != 0) {
		if (is_last(queue, lock)) {
			CRASH_POINT("queue.alone");
			queuefile_remove(lock);
		}
		lock_tickets(queue, F_OFD_SETLK, F_UNLCK, 0, 0);
	}
	close_queue(queue);
}
