/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "report/error.h"
#include "report/status_fd.h"

int status_fd = -1;
bool status_fd_wanted;
static char outcome[40];
static bool notes;

int status_fd_use(int fd)
{
	/* The command needs standard input, output and error as well. */
	if (fcntl(fd, F_SETFD, fd > STDERR_FILENO ? FD_CLOEXEC : 0) != 0)
		return -1;
	status_fd = fd;
	status_fd_wanted = true;
	return 0;
}

void status_fd_note_outcome(void)
{
	notes = status_fd_wanted = true;
}

const char *status_fd_outcome(void)
{
	return outcome;
}

void status_fd_set_outcome(const char *words)
{
	snprintf(outcome, sizeof outcome, "%s", words);
}

/* The last event tells, but that the limit has ended the command stands before its status. */
static void note(const char *line)
{
	static const char *const no_outcomes[] = {"acquired", "nested", "stopped"};
	const char *end = strstr(line, " held=");

	for (size_t i = 0; i < sizeof no_outcomes / sizeof *no_outcomes; i++)
		if (strncmp(line, no_outcomes[i], strlen(no_outcomes[i])) == 0)
			return;
	if (strcmp(outcome, "run-timeout") != 0 || strcmp(line, "lost") == 0)
		snprintf(outcome, sizeof outcome, "%.*s",
		    (int)(end == NULL ? strlen(line) : (size_t)(end - line)), line);
}

void status_fd_write(const char *fmt, ...)
{
	char line[128];
	va_list args;
	size_t used;

	va_start(args, fmt);
	vsnprintf(line, sizeof line - 1, fmt, args);
	va_end(args);
	if (notes)
		note(line);
	if (status_fd < 0)
		return;
	used = strlen(line);
	line[used++] = '\n';
	write_without_sigpipe(status_fd, line, used);
}

const char *status_fd_errno(int errnum)
{
	static const struct {
		int number;
		char symbol[sizeof "ENAMETOOLONG"];
	} names[] = {
	    {E2BIG, "E2BIG"},
	    {EACCES, "EACCES"},
	    {EAGAIN, "EAGAIN"},
	    {EINVAL, "EINVAL"},
	    {EIO, "EIO"},
	    {EISDIR, "EISDIR"},
	    {ELOOP, "ELOOP"},
	    {EMFILE, "EMFILE"},
	    {ENAMETOOLONG, "ENAMETOOLONG"},
	    {ENFILE, "ENFILE"},
	    {ENOENT, "ENOENT"},
	    {ENOEXEC, "ENOEXEC"},
	    {ENOMEM, "ENOMEM"},
	    {ENOTDIR, "ENOTDIR"},
	    {EPERM, "EPERM"},
	    {ETXTBSY, "ETXTBSY"},
	};
	static char number[16];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].number == errnum)
			return names[i].symbol;
	snprintf(number, sizeof number, "%d", errnum);
	return number;
}
