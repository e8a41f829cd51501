/* SPDX-License-Identifier: MIT */
/* probe-signals.c - a command that reports the signals it gets. */
#include <config.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "probe.h"

/* The job control signals still stop the process. */
static void all_but_stops(sigset_t *set)
{
	sigfillset(set);
	sigdelset(set, SIGTSTP);
	sigdelset(set, SIGTTIN);
	sigdelset(set, SIGTTOU);
}

static void say(int out, const char *word, long pid)
{
	char line[64];
	int n = pid > 0 ? snprintf(line, sizeof line, "%s %ld\n", word, pid)
	                : snprintf(line, sizeof line, "%s\n", word);

	if (write(out, line, (size_t)n) != n)
		fail("cannot write", word);
}

static int open_or(const char *name, int standard)
{
	int fd = strcmp(name, "-") == 0 ? standard : open(name, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		fail("cannot open", name);
	return fd;
}

/* signals UP DOWN: writes "ready PID" on FIFO UP, then the name of each signal as it
 * arrives; ends with 0 when a line or a byte comes down DOWN.  "-" is standard output or input. */
int cmd_signals(int argc, char **argv)
{
	struct pollfd from[2] = {{.events = POLLIN}, {.events = POLLIN}};
	struct signalfd_siginfo info;
	sigset_t set;
	char line[256];
	int up;

	if (argc != 3)
		misuse("signals UP DOWN");
	up = open_or(argv[1], STDOUT_FILENO);
	all_but_stops(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	from[0].fd = signalfd(-1, &set, SFD_CLOEXEC);
	from[1].fd = open_or(argv[2], STDIN_FILENO);
	say(up, "ready", getpid());
	for (;;) {
		if (poll(from, 2, -1) < 0)
			continue;
		if (from[0].revents != 0 && read(from[0].fd, &info, sizeof info) == sizeof info)
			say(up, signal_name((int)info.ssi_signo), 0);
		else if (from[1].revents != 0)
			return read(from[1].fd, line, sizeof line) < 0;
	}
}
