#include <config.h>

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fdinfo.h"
#include "lock.h"
#include "procfs.h"

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

enum fdinfo_mode fdinfo_held(const struct lock *lock)
{
	char path[64], text[4096], *line, *rest;
	enum fdinfo_mode held = FDINFO_NONE;
	ssize_t got;
	int fd;

	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", lock->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return FDINFO_NONE;
	got = read(fd, text, sizeof text - 1);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	for (line = strtok_r(text, "\n", &rest); line != NULL && held == FDINFO_NONE;
	     line = strtok_r(NULL, "\n", &rest))
		held = read_line(lock, line);
	return held;
}
