/* A line of /proc/self/fdinfo/8 looks like
 *
 *     lock:	1: FLOCK  ADVISORY  WRITE 4711 fe:00:262402 0 EOF
 *
 * with OFDLCK for a record lock of the description, and first and last byte at the end. */
#include <config.h>

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fdinfo.h"
#include "lock.h"

static bool covers(const struct lock *lock, const char *first, const char *last)
{
	long long start = 0, end = LLONG_MAX;
	long long wanted = lock->range.length == 0
			       ? LLONG_MAX
			       : (long long)(lock->range.start + lock->range.length - 1);

	if (sscanf(first, "%lld", &start) != 1)
		return false;
	if (strcmp(last, "EOF") != 0 && sscanf(last, "%lld", &end) != 1)
		return false;
	return start <= (long long)lock->range.start && end >= wanted;
}

static enum fdinfo_mode read_line(const struct lock *lock, const char *line)
{
	const char *ours = (lock->method->can & CAN_RANGE) != 0 ? "OFDLCK" : "FLOCK";
	char kind[16], mode[16], first[32], last[32];

	if (sscanf(line, "lock: %*d: %15s %*s %15s %*s %*s %31s %31s", kind, mode, first, last) != 4)
		return FDINFO_NONE;
	if (strcmp(kind, ours) != 0)
		return FDINFO_NONE;
	/* Of a part only, as if it were less: then it is let go before we queue. */
	if (strcmp(mode, "WRITE") == 0 && covers(lock, first, last))
		return FDINFO_EXCLUSIVE;
	return FDINFO_SHARED;
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
