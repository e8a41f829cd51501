#include <config.h>

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lock/held_mode.h"
#include "lock/lock.h"
#include "sys/proc.h"

static bool covers(const struct procfs_lock *held, const struct lock *lock)
{
	long long last = lock->range.length == 0
			     ? LLONG_MAX
			     : (long long)(lock->range.start + lock->range.length - 1);

	return held->first <= (long long)lock->range.start && held->last >= last;
}

static enum fdinfo_mode read_line(const struct lock *lock, const char *line)
{
	unsigned ours = (lock->method->can & CAN_RANGE) != 0 ? KIND_OFD : KIND_FLOCK;
	struct procfs_lock held;

	if (!procfs_lock_line(line, &held) || held.kind != ours)
		return FDINFO_NONE;
	/* Of a part only, as if it were less: then it is let go before we queue. */
	return held.exclusive && covers(&held, lock) ? FDINFO_EXCLUSIVE : FDINFO_SHARED;
}

static bool read_fdinfo(const struct lock *lock, char *text, size_t size)
{
	char path[64];
	ssize_t got;
	int fd;

	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", lock->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	got = read(fd, text, size - 1);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	return true;
}

enum fdinfo_mode fdinfo_held(const struct lock *lock)
{
	char text[4096], *line, *rest;
	enum fdinfo_mode held = FDINFO_NONE;

	if (!read_fdinfo(lock, text, sizeof text))
		return FDINFO_NONE;
	for (line = strtok_r(text, "\n", &rest); line != NULL && held == FDINFO_NONE;
	     line = strtok_r(NULL, "\n", &rest))
		held = read_line(lock, line);
	return held;
}

/* The bytes of slots, from 1 << 61 on, are nobody's data, and waited for by nobody else. */
static bool is_more(const struct lock *lock, const struct procfs_lock *held)
{
	long long first = lock->range.start;
	long long length = lock->slots > 0 ? (long long)lock->slots : (long long)lock->range.length;

	if ((lock->method->can & CAN_RANGE) == 0)
		return held->kind != KIND_FLOCK && held->first < (1LL << 61);
	if (held->kind != KIND_OFD)
		return true;
	return held->last < first ||
	       (length > 0 && held->first >= first + length && held->first < (1LL << 61));
}

bool fdinfo_carries_more(const struct lock *lock)
{
	char text[4096], *line, *rest;
	struct procfs_lock held;

	if (!read_fdinfo(lock, text, sizeof text))
		return false;
	for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
		if (procfs_lock_line(line, &held) && is_more(lock, &held))
			return true;
	return false;
}

int fdinfo_slot(const struct lock *lock)
{
	bool bytes = (lock->method->can & CAN_RANGE) != 0;
	long long first = bytes ? lock->range.start : FLOCK_FIRST_SLOT;
	char text[4096], *line, *rest;
	struct procfs_lock held;

	if (!read_fdinfo(lock, text, sizeof text))
		return -1;
	for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
		if (procfs_lock_line(line, &held) && held.kind == KIND_OFD && held.exclusive &&
		    held.first >= first && held.first < first + (long long)lock->slots)
			return (int)(held.first - first);
	return -1;
}
