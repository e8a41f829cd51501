/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "sys/terminal.h"

enum { PATIENCE = 20 /* ms */ };

/* Open the terminal anew: O_NONBLOCK on standard error would affect all processes that share its
 * open file description.  Try /dev/tty first: a user who has switched to another account may open
 * it, but perhaps not the terminal's own file.  /proc is for a chroot without /dev. */
int terminal_open(void)
{
	const int flags = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	int terminal = open("/dev/tty", flags);

	if (terminal < 0 && isatty(STDERR_FILENO))
		terminal = open("/proc/self/fd/2", flags);
	return terminal;
}

static size_t put_once(int terminal, const char *text, size_t length)
{
	ssize_t put = write(terminal, text, length);

	return put < 0 ? 0 : (size_t)put;
}

size_t terminal_put(int terminal, const char *text, size_t length)
{
	struct pollfd room = {terminal, POLLOUT, 0};
	size_t put = put_once(terminal, text, length);

	if (put == 0 && poll(&room, 1, PATIENCE) > 0)
		put = put_once(terminal, text, length);
	return put;
}

bool terminal_takes_bytes(int fd)
{
	struct pollfd room = {fd, POLLOUT, 0};

	return poll(&room, 1, PATIENCE) != 0;
}

size_t terminal_columns(int fd)
{
	struct winsize size;

	return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool terminal_shows_group(pid_t group)
{
	int terminal = terminal_open();
	const bool shows = terminal >= 0 && tcgetpgrp(terminal) == group;

	if (terminal >= 0)
		close(terminal);
	return shows;
}

bool terminal_pass(pid_t from, pid_t to)
{
	int terminal = terminal_open();
	const bool passed =
	    terminal >= 0 && tcgetpgrp(terminal) == from && tcsetpgrp(terminal, to) == 0;

	if (terminal >= 0)
		close(terminal);
	return passed;
}
