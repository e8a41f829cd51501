/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "report/error.h"
#include "run/caller_lines.h"
#include "sys/files.h"

void caller_lines_begin(struct caller_lines *lines, int64_t time)
{
	lines->time = time;
	lines->due = time > 0 ? deadline_after(time) : deadline_never();
}

/* A caller that writes and does not read must not stop this process, which would then hold the lock
 * for ever. A line that is not echoed is one that the caller cannot count on. */
static void echo(const struct caller_lines *lines)
{
	struct pollfd output = {STDOUT_FILENO, POLLOUT, 0};

	if (poll(&output, 1, 0) == 1 && (output.revents & POLLOUT) != 0)
		write_without_sigpipe(STDOUT_FILENO, lines->line, lines->length);
}

/* Returns whether the line is "release". */
static bool end_line(struct caller_lines *lines)
{
	static const char release[] = "release\n";
	bool releases;

	lines->line[lines->length++] = '\n';
	releases =
	    lines->length == strlen(release) && memcmp(lines->line, release, strlen(release)) == 0;
	if (!releases)
		echo(lines);
	lines->length = 0;
	caller_lines_begin(lines, lines->time);
	return releases;
}

enum caller_says caller_lines_read(struct caller_lines *lines)
{
	char bytes[512];
	ssize_t got;

	UNINTERRUPTED(got, read(STDIN_FILENO, bytes, sizeof bytes));
	if (got < 0 && errno == EAGAIN)
		return CALLER_LIVES;
	if (got <= 0)
		return CALLER_IS_GONE;
	for (ssize_t i = 0; i < got; i++) {
		if (bytes[i] == '\n') {
			if (end_line(lines))
				return CALLER_RELEASES;
		} else if (lines->length < sizeof lines->line - 1)
			lines->line[lines->length++] = bytes[i];
	}
	return CALLER_LIVES;
}
