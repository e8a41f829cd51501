/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "locksmith/common/protocol.h"
#include "report/error.h"

/* protocol_pump() reads at most a page at a time, which is what semlock's pipe holds. */
enum { READ_BYTES = 256, READS_MOST = 4096 / READ_BYTES };

static struct {
	char line[128];
	size_t used;
	bool too_long; /* drop the whole line */
	bool started;
	long command;
	bool unlock;
	bool ended;
} input;

/* Lines for which the pipe had no room.  WAIT is not kept, because it is soon out of date.  Of
 * several HELD, only the last is kept.  No other line may be lost: without OK, for example, semlock
 * would go on waiting for a lock that it holds. */
static struct {
	char lines[3072];
	size_t used;
	char held[64];
} unsaid;

/* Write TEXT if the pipe has room: POLLOUT promises PIPE_BUF bytes.  Returns false if it had none
 * within TIMEOUT_MS (-1: wait forever). */
static bool write_line(const char *text, size_t length, int timeout_ms)
{
	struct pollfd out = {STDOUT_FILENO, POLLOUT, 0};

	if (poll(&out, 1, timeout_ms) != 1)
		return false;
	if (out.revents & POLLOUT)
		while (write(STDOUT_FILENO, text, length) < 0 && errno == EINTR)
			;
	return true; /* also if the reader has gone */
}

/* Is WORD the first word of LINE? */
static bool begins(const char *line, const char *word)
{
	size_t length = strlen(word);

	return strncmp(line, word, length) == 0 &&
	       (line[length] == '\0' || line[length] == ' ' || line[length] == '\n');
}

static void keep_unsaid(const char *line, size_t length)
{
	if (begins(line, SAYS_WAIT))
		return;
	if (begins(line, SAYS_HELD)) {
		snprintf(unsaid.held, sizeof unsaid.held, "%.*s", (int)length, line);
		return;
	}
	/* HELD would be written after this line: drop it, because the lock is gone. */
	if (begins(line, SAYS_FREE) || begins(line, SAYS_LOST))
		unsaid.held[0] = '\0';
	if (length <= sizeof unsaid.lines - unsaid.used) {
		memcpy(unsaid.lines + unsaid.used, line, length);
		unsaid.used += length;
	}
}

static void say_unsaid(void)
{
	char text[sizeof unsaid.lines + sizeof unsaid.held]; /* below PIPE_BUF */
	size_t held = strlen(unsaid.held);

	if (unsaid.used + held == 0)
		return;
	memcpy(text, unsaid.lines, unsaid.used);
	memcpy(text + unsaid.used, unsaid.held, held);
	if (!write_line(text, unsaid.used + held, 0))
		return;
	unsaid.used = 0;
	unsaid.held[0] = '\0';
}

void protocol_end(void)
{
	struct pollfd out = {STDOUT_FILENO, POLLOUT, 0};

	say_unsaid();
	while (unsaid.used > 0) {
		/* Report no error: the last line may be FREE, and nothing may follow it. */
		if (poll(&out, 1, -1) < 0 && errno != EINTR)
			return;
		say_unsaid();
	}
}

void protocol_poll_failed(void)
{
	char line[128];
	int length, errnum = errno;

	if (errnum == EINTR)
		return;
	/* Write this without say(), which would call poll(2) first. */
	if (protocol_started())
		length =
		    snprintf(line, sizeof line, SAYS_LOST " cannot wait: %s\n", strerror(errnum));
	else
		length = snprintf(line, sizeof line, SAYS_ERR " %d cannot wait: %s\n", EXIT_SYSTEM,
		    strerror(errnum));
	while (write(STDOUT_FILENO, line, (size_t)length) < 0 && errno == EINTR)
		;
	_exit(EXIT_SYSTEM);
}

void say(const char *format, ...)
{
	char line[LOCKSMITH_LINE]; /* far below PIPE_BUF: one write, whole */
	va_list args;
	size_t length;
	bool answer;

	va_start(args, format);
	vsnprintf(line, sizeof line - 1, format, args);
	va_end(args);
	for (unsigned char *p = (unsigned char *)line; *p != '\0'; p++)
		if (*p < ' ' || *p == 0x7f)
			*p = '?'; /* a server's text must not become a line of the protocol */
	length = strlen(line);
	line[length++] = '\n';
	/* WHO comes only with --who, when no lock is held: it may block. */
	answer = begins(line, SAYS_WHO);
	say_unsaid();
	if (unsaid.used + strlen(unsaid.held) > 0 || !write_line(line, length, answer ? -1 : 0))
		keep_unsaid(line, length);
}

void say_wait(const char *who)
{
	static char last[512];

	if (strncmp(who, last, sizeof last - 1) == 0)
		return;
	snprintf(last, sizeof last, "%s", who);
	say(SAYS_WAIT " %s", who);
}

int protocol_fd(void)
{
	return input.ended ? -1 : STDIN_FILENO;
}

static void obey_line(const char *text)
{
	const char *pid = strstr(text, " " FIELD_PID);

	if (begins(text, TOLD_UNLOCK)) {
		input.unlock = true;
	} else if (begins(text, TOLD_START)) {
		input.started = true;
		input.command = pid == NULL ? 0 : strtol(pid + strlen(" " FIELD_PID), NULL, 10);
	} else {
		say(SAYS_ERR " %d unknown line: %s", EXIT_INTERNAL, text);
	}
}

static void input_byte(char c)
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
		obey_line(input.line);
	input.used = 0;
	input.too_long = false;
}

static void end_soon(int sig)
{
	signal(sig, SIG_IGN); /* another TERM must not postpone the alarm */
	alarm(1);
}

/* Nobody has our input open any more, so at most the release is left to do.  Until now, the helper
 * has ignored TERM (main.c).  From now on, TERM ends it within a second, in case a server makes the
 * release take long. */
static void input_over(void)
{
	input.ended = true;
	signal(SIGALRM, SIG_DFL);
	signal(SIGTERM, end_soon);
}

void protocol_pump(void)
{
	struct pollfd in = {STDIN_FILENO, POLLIN, 0};
	char bytes[READ_BYTES];
	ssize_t got;
	int ready = 1;

	say_unsaid();
	/* An input without end, such as /dev/zero, always has more to read.  Stop after READS_MOST
	 * reads: the lease, and the end of the wait, come first. */
	for (int reads = 0; reads < READS_MOST && !input.ended; reads++) {
		ready = poll(&in, 1, 0);
		if (ready != 1)
			break;
		got = read(STDIN_FILENO, bytes, sizeof bytes);
		if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
			input_over();
		for (ssize_t i = 0; i < got; i++)
			input_byte(bytes[i]);
	}
	if (ready < 0)
		protocol_poll_failed();
}

bool protocol_started(void)
{
	return input.started;
}

long protocol_command(void)
{
	return input.command;
}

bool protocol_released(void)
{
	return input.unlock || input.ended;
}
