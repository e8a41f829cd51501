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

int status_fd_use(int fd)
{
	/* If FD is standard input, output or error, the command needs it as well. */
	if (fcntl(fd, F_SETFD, fd > STDERR_FILENO ? FD_CLOEXEC : 0) != 0)
		return -1;
	status_fd = fd;
	return 0;
}

void status_fd_write(const char *fmt, ...)
{
	char line[128];
	va_list args;
	size_t used;

	va_start(args, fmt);
	vsnprintf(line, sizeof line - 1, fmt, args);
	va_end(args);
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
