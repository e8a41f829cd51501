#include <config.h>

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lock/held_mode.h"
#include "sys/proc.h"

static bool has_range(const struct lock *lock)
{
	return (lock->method->can & CAN_RANGE) != 0;
}

/* Put /proc/self/fdinfo/FD into TEXT, of SIZE bytes; "" if it cannot be read. */
static void read_fdinfo(int fd, char *text, size_t size)
{
	char path[64];
	ssize_t got;
	int info;

	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	got = info < 0 ? 0 : read(info, text, size - 1);
	if (info >= 0)
		close(info);
	text[got > 0 ? got : 0] = '\0';
}

/* The next lock of the text at *REST, which moves on. */
static bool next_held(char **rest, struct procfs_lock *held)
{
	char *line;

	while ((line = strsep(rest, "\n")) != NULL)
		if (procfs_lock_line(line, held))
			return true;
	return false;
}

static bool covers(const struct procfs_lock *held, const struct range *range)
{
	long long last = range->length == 0 ? LLONG_MAX : (long long)(range->start + range->length - 1);

	return held->first <= (long long)range->start && held->last >= last;
}

static enum held_mode held_mode_of(const struct lock *lock, const struct procfs_lock *held)
{
	if (held->kind != (has_range(lock) ? KIND_OFD : KIND_FLOCK))
		return HELD_NONE;
	return held->exclusive && covers(held, &lock->range) ? HELD_EXCLUSIVE : HELD_SHARED;
}

enum held_mode held_mode(const struct lock *lock)
{
	enum held_mode mode = HELD_NONE;
	char text[4096], *rest = text;
	struct procfs_lock held;

	read_fdinfo(lock->fd, text, sizeof text);
	while (mode == HELD_NONE && next_held(&rest, &held))
		mode = held_mode_of(lock, &held);
	return mode;
}

static bool is_more(const struct lock *lock, const struct procfs_lock *held)
{
	long long first = lock->range.start;
	long long length = lock->slots > 0 ? (long long)lock->slots : (long long)lock->range.length;
	bool of_slots = held->first >= BYTES_OF_DATA;

	if (!has_range(lock))
		return held->kind != KIND_FLOCK && !of_slots;
	if (held->kind != KIND_OFD)
		return true;
	return held->last < first || (length > 0 && held->first >= first + length && !of_slots);
}

bool held_more(const struct lock *lock)
{
	char text[4096], *rest = text;
	struct procfs_lock held;

	read_fdinfo(lock->fd, text, sizeof text);
	while (next_held(&rest, &held))
		if (is_more(lock, &held))
			return true;
	return false;
}

int held_slot(const struct lock *lock)
{
	long long first = has_range(lock) ? lock->range.start : FLOCK_FIRST_SLOT;
	char text[4096], *rest = text;
	struct procfs_lock held;

	read_fdinfo(lock->fd, text, sizeof text);
	while (next_held(&rest, &held))
		if (held.kind == KIND_OFD && held.exclusive && held.first >= first &&
		    held.first < first + (long long)lock->slots)
			return (int)(held.first - first);
	return -1;
}
