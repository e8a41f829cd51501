#include <config.h>

#include "locksmith/protocol.h"

#include "locksmith/guard.h"
#include "locksmith/why.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
	char line[128];
	size_t used;
	bool too_long; /* the rest of an overlong line is dropped with it */
	bool unlock;
	bool ended;
} input;

void say(const char *format, ...)
{
	char line[1024]; /* far below PIPE_BUF: one write, whole */
	struct pollfd out = {STDOUT_FILENO, POLLOUT, 0};
	va_list args;
	size_t length;

	va_start(args, format);
	vsnprintf(line, sizeof line - 1, format, args);
	va_end(args);
	why_clean(line);
	length = strlen(line);
	line[length++] = '\n';
	/* POLLOUT promises room for PIPE_BUF bytes, so this write cannot block. */
	if (poll(&out, 1, 0) == 1 && (out.revents & POLLOUT))
		while (write(STDOUT_FILENO, line, length) < 0 && errno == EINTR)
			;
}

void say_wait(const char *who)
{
	static char last[512];

	if (strncmp(who, last, sizeof last - 1) == 0)
		return;
	snprintf(last, sizeof last, "%s", who);
	say("WAIT %s", who);
}

void say_ok(int64_t token, int slot, int64_t lease, int64_t deadline)
{
	char fence[40] = "", number[24] = "";

	if (token >= 0)
		snprintf(fence, sizeof fence, " token=%" PRId64, token);
	if (slot >= 0)
		snprintf(number, sizeof number, " slot=%d", slot);
	say("OK%s%s lease=%" PRId64 " deadline=%" PRId64, fence, number, lease, deadline);
}

int protocol_fd(void)
{
	return input.ended ? -1 : STDIN_FILENO;
}

static void child_line(const char *number)
{
	char *end;
	long pid = strtol(number, &end, 10);

	/* The answer is what semlock waits for before it lets the command start: until then the
	   number cannot have passed to another process. */
	if (*end == '\0' && pid > 1 && guard_child((pid_t)pid) == 0)
		say("CHILD %ld", pid);
	else
		say("ERR %d no such child: %s", EXIT_INTERNAL, number);
}

static void line(const char *text)
{
	if (strcmp(text, "UNLOCK") == 0)
		input.unlock = true;
	else if (strncmp(text, "CHILD ", 6) == 0)
		child_line(text + 6);
	else
		say("ERR %d unknown line: %s", EXIT_INTERNAL, text);
}

static void byte(char c)
{
	if (c != '\n') {
		if (input.used < sizeof input.line - 1)
			input.line[input.used++] = c;
		else
			input.too_long = true;
		return;
	}
	input.line[input.used] = '\0';
	if (!input.too_long)
		line(input.line);
	input.used = 0;
	input.too_long = false;
}

void protocol_pump(void)
{
	struct pollfd in = {STDIN_FILENO, POLLIN, 0};
	char bytes[256];
	ssize_t got;

	while (!input.ended && poll(&in, 1, 0) == 1) {
		got = read(STDIN_FILENO, bytes, sizeof bytes);
		if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
			input.ended = true;
		for (ssize_t i = 0; i < got; i++)
			byte(bytes[i]);
	}
}

bool protocol_released(void)
{
	return input.unlock || input.ended;
}

bool protocol_ended(void)
{
	return input.ended;
}
