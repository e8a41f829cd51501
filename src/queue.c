#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alarm.h"
#include "crash.h"
#include "descriptor.h"
#include "lock.h"
#include "methods/namefile.h"
#include "queue.h"

#if HAVE_DECL_F_OFD_SETLK && HAVE_SHM_OPEN

/* Never on a descriptor that anybody inherits: a ticket must end with its drawer. */
#define QUEUE_FLAGS (O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)

static void close_file(struct queue *queue)
{
	if (queue->fd >= 0)
		close(queue->fd);
	queue->fd = -1;
}

/* A lock that is a name in a directory: two names of one hash would share a queue. */
static uint64_t hash_of(const char *name)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (; *name != '\0'; name++)
		hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
	return hash;
}

static void name_of(const struct lock *lock, char name[64])
{
	int used = snprintf(name, 64, "/semlock-%llx-%llx", (unsigned long long)lock->device,
	    (unsigned long long)lock->inode);

	if (lock->file != NULL)
		snprintf(name + used, (size_t)(64 - used), "-%llx",
		    (unsigned long long)hash_of(lock->file->base));
}

void queue_path(const struct lock *lock, char *path, size_t size)
{
	char name[64];

	name_of(lock, name);
	snprintf(path, size, "/dev/shm%s", name); /* where glibc, musl and bionic have it */
}

/* Whoever may read the lock file may lock it, and so may queue for it. */
static mode_t queue_mode(const struct lock *lock, int fd)
{
	mode_t mode = 0600;

	if ((lock->permissions & S_IROTH) != 0)
		mode |= 0006;
	if ((lock->permissions & S_IRGRP) != 0 && fchown(fd, (uid_t)-1, lock->group) == 0)
		mode |= 0060;
	return mode;
}

enum trust { TRUSTED, REMOVED, NOT_TRUSTED };

/* Somebody else's file of that name could be locked all over to hold us up. */
static enum trust look_at(int fd, const struct lock *lock)
{
	struct stat file;

	if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode) || file.st_nlink > 1)
		return NOT_TRUSTED;
	if (file.st_uid != 0 && file.st_uid != lock->owner && file.st_uid != geteuid())
		return NOT_TRUSTED;
	return file.st_nlink == 1 ? TRUSTED : REMOVED;
}

static int create(const char *name, const struct lock *lock)
{
	int fd = shm_open(name, QUEUE_FLAGS | O_CREAT | O_EXCL, 0600);

	if (fd >= 0 && fchmod(fd, queue_mode(lock, fd)) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static int open_or_create(const char *name, const struct lock *lock)
{
	int fd;

	do { /* another waiter may make it, or the last one remove it, between the two */
		fd = shm_open(name, QUEUE_FLAGS, 0);
		if (fd < 0 && errno == ENOENT)
			fd = create(name, lock);
	} while (fd < 0 && errno == EEXIST);
	return fd;
}

enum queue_state queue_open(struct queue *queue, const struct lock *lock)
{
	char name[64];
	int fd;

	*queue = (struct queue){.fd = -1};
	name_of(lock, name);
	fd = shm_open(name, QUEUE_FLAGS, 0);
	if (fd < 0)
		return errno == ENOENT ? QUEUE_ABSENT : QUEUE_UNUSABLE;
	queue->fd = descriptor_above_standard(fd);
	if (queue->fd >= 0 && look_at(queue->fd, lock) == TRUSTED)
		return QUEUE_OPEN;
	close_file(queue);
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

/* The nearest ticket before ours.  Tickets drawn at the same moment stand close
 * together, and the nearest one usually stands close to ours: look there first. */
static bool nearest(const struct queue *queue, int64_t *ticket)
{
	int64_t window, found;

	if (!find(queue, 0, queue->ticket, ticket))
		return false;
	for (window = 4 * MILLISECOND; queue->ticket - window > *ticket; window *= 8)
		if (find(queue, queue->ticket - window, queue->ticket, &found)) {
			*ticket = found;
			break;
		}
	*ticket = highest(queue, *ticket, queue->ticket);
	return true;
}

/* An even number, so that between any two there is room for one more. */
static int draw(struct queue *queue)
{
	do {
		queue->ticket = 2 * clock_now();
		if (lock_byte(queue->fd, F_OFD_SETLK, F_WRLCK, queue->ticket) == 0) {
			CRASH_POINT("queue.drawn");
			return 0;
		}
	} while (errno == EAGAIN || errno == EACCES);
	return -1;
}

/* Until we had our ticket, the last of the others may have removed the file under us:
 * then there is another one to draw from, where the next ones will look. */
bool queue_join(struct queue *queue, const struct lock *lock)
{
	enum trust trust;
	char name[64];
	int fd;

	name_of(lock, name);
	do {
		close_file(queue);
		fd = open_or_create(name, lock);
		if (fd < 0)
			return false;
		queue->fd = descriptor_above_standard(fd);
		if (queue->fd < 0)
			return false;
		trust = look_at(queue->fd, lock);
		if (trust == TRUSTED && draw(queue) == 0)
			trust = look_at(queue->fd, lock);
		else if (trust == TRUSTED)
			trust = NOT_TRUSTED;
	} while (trust == REMOVED);
	if (trust == TRUSTED)
		return true;
	close_file(queue);
	return false;
}

bool queue_empty(const struct queue *queue)
{
	int64_t ticket;

	return !find(queue, 0, INT64_MAX, &ticket);
}

bool queue_stalled(struct queue *queue)
{
	int64_t oldest = 0;

	if (find(queue, 0, queue->ticket, &oldest) && oldest == queue->oldest)
		return true;
	queue->oldest = oldest;
	return false;
}

enum turn queue_await(struct queue *queue, const struct deadline *deadline)
{
	struct why ignored;
	int64_t before, left;

	while (nearest(queue, &before)) {
		left = deadline_left(deadline);
		if (alarm_set(left < SECOND ? left : SECOND, &ignored) != 0)
			return TURN_BROKEN;
		if (lock_byte(queue->fd, F_OFD_SETLKW, F_RDLCK, before) == 0)
			continue;
		if (errno != EINTR)
			return TURN_BROKEN;
		if (deadline_left(deadline) == 0)
			return TURN_EXPIRED;
		if (queue_stalled(queue))
			return TURN_STALLED;
	}
	return TURN_OURS;
}

/* Is nobody else in the queue?  If so, nobody can get in until we close the file: the
 * whole of it is ours. */
static bool alone(const struct queue *queue)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(queue->fd, F_OFD_SETLK, &all) == 0;
}

void queue_leave(struct queue *queue, const struct lock *lock)
{
	if (queue->fd >= 0 && queue->ticket != 0 && alone(queue)) {
		CRASH_POINT("queue.alone");
		queue_remove(lock);
	}
	close_file(queue);
}

void queue_remove(const struct lock *lock)
{
	char name[64];

	name_of(lock, name);
	shm_unlink(name);
}

#else /* no such locks, or no shared memory */

enum queue_state queue_open(struct queue *queue, const struct lock *lock)
{
	(void)lock;
	*queue = (struct queue){.fd = -1};
	return QUEUE_UNUSABLE;
}

bool queue_join(struct queue *queue, const struct lock *lock)
{
	(void)queue;
	(void)lock;
	return false;
}

bool queue_empty(const struct queue *queue)
{
	(void)queue;
	return true;
}

enum turn queue_await(struct queue *queue, const struct deadline *deadline)
{
	(void)queue;
	(void)deadline;
	return TURN_BROKEN;
}

bool queue_stalled(struct queue *queue)
{
	(void)queue;
	return false;
}

void queue_leave(struct queue *queue, const struct lock *lock)
{
	(void)queue;
	(void)lock;
}

void queue_remove(const struct lock *lock)
{
	(void)lock;
}

void queue_path(const struct lock *lock, char *path, size_t size)
{
	(void)lock;
	if (size > 0)
		path[0] = '\0';
}

#endif
