/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "report/error.h"
#include "report/text.h"

static const char *program = "semlock";

void report_as(const char *name)
{
	program = name;
}

static bool relayed_to_terminal;

void report_to_terminal(void)
{
	relayed_to_terminal = true;
}

bool report_is_on_terminal(void)
{
	return relayed_to_terminal || isatty(STDERR_FILENO);
}

int exit_status_of(enum kind kind)
{
	switch (kind) {
	case ERROR_NONE:
		return EXIT_INTERNAL;
	case ERROR_AWAY:
	case ERROR_SLOW:
		return EXIT_UNAVAILABLE;
	default:
		return (int)kind;
	}
}

int error_fill(struct error *error, enum kind kind, int errnum, const char *fmt, ...)
{
	va_list args;
	size_t used;

	error->kind = kind;
	error->errnum = errnum;
	va_start(args, fmt);
	vsnprintf(error->text, sizeof error->text, fmt, args);
	va_end(args);
	used = strlen(error->text);
	if (errnum != 0)
		snprintf(error->text + used, sizeof error->text - used, ": %s", strerror(errnum));
	errno = errnum;
	return -1;
}

int error_no_process(struct error *error)
{
	if (errno != EAGAIN)
		return error_set(error, ERROR_SYSTEM, "cannot start a process");
	return error_plain(error, ERROR_SYSTEM,
	    "cannot start a process: the limit of processes is reached (ulimit -u, or pids.max of "
	    "the control group)");
}

/* Take the SIGPIPE that a failed write(2) has left pending for this thread.  If a sandbox refuses
 * sigtimedwait(2), ignore SIGPIPE for a moment: that discards it. */
static void take_sigpipe(const sigset_t *only_pipe)
{
	const struct timespec at_once = {0, 0};
	struct sigaction ignored = {.sa_handler = SIG_IGN}, before;
	int got;

	do
		got = sigtimedwait(only_pipe, NULL, &at_once);
	while (got < 0 && errno == EINTR);
	if (got < 0 && errno != EAGAIN) {
		sigaction(SIGPIPE, &ignored, &before);
		sigaction(SIGPIPE, &before, NULL);
	}
}

/* Block SIGPIPE in this thread only.  To ignore it would affect the whole process: if two threads
 * wrote at once, the second would save SIG_IGN as the old action, and leave SIGPIPE ignored.  Do
 * not use send(2) with MSG_NOSIGNAL: the sandboxes of coding agents refuse it. */
ssize_t write_without_sigpipe(int fd, const void *bytes, size_t size)
{
	sigset_t only_pipe, before;
	ssize_t put;
	int errnum;

	sigemptyset(&only_pipe);
	sigaddset(&only_pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &only_pipe, &before);
	do
		put = write(fd, bytes, size);
	while (put < 0 && errno == EINTR);
	errnum = errno;
	if (put < 0 && errnum == EPIPE)
		take_sigpipe(&only_pipe);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = errnum;
	return put;
}

/* A lock's name is foreign data: it must not control a terminal or break a line in two. */
static void PRINTF_LIKE(2, 0) write_message(int fd, const char *fmt, va_list args)
{
	const int saved = errno;
	char text[5120], line[5120];
	size_t used;

	snprintf(text, sizeof text, "%s: ", program);
	used = strlen(text);
	vsnprintf(text + used, sizeof text - used, fmt, args);
	text_printable(line, sizeof line - 1, text, strlen(text), sizeof line);
	used = strlen(line);
	line[used++] = '\n';
	write_without_sigpipe(fd, line, used);
	errno = saved;
}

void print_line(const char *fmt, ...)
{
	char text[5120], line[5120];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	text_printable(line, sizeof line, text, strlen(text), sizeof line);
	puts(line);
}

void tell(int fd, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	write_message(fd, fmt, args);
	va_end(args);
}

void end_output(int status)
{
	if (fflush(stdout) != 0 || ferror(stdout))
		die(EXIT_SYSTEM, "cannot write to standard output");
	exit(status);
}

void die(int status, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	write_message(STDERR_FILENO, fmt, args);
	va_end(args);
	exit(status);
}
