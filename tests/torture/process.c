/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "torture.h"

static bool slurp(pid_t pid, const char *what, char *text, size_t size)
{
	char path[48];
	ssize_t got;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, what);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	got = read(fd, text, size - 1);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	return got > 0;
}

/* True if SIGKILL is pending: it does not end a process at once. */
static bool has_kill_pending(pid_t pid)
{
	char text[4096];
	const char *names[] = {"\nSigPnd:\t", "\nShdPnd:\t"};

	if (!slurp(pid, "status", text, sizeof text))
		return true;
	for (int i = 0; i < 2; i++) {
		const char *at = strstr(text, names[i]);

		if (at != NULL && (strtoull(at + 9, NULL, 16) >> (SIGKILL - 1) & 1) != 0)
			return true;
	}
	return false;
}

bool dying(pid_t pid)
{
	char text[512], *end;

	if (!slurp(pid, "stat", text, sizeof text))
		return true;
	end = strrchr(text, ')');
	if (end == NULL || strchr("ZX", end[2]) != NULL)
		return true;
	for (int field = 2; field < 9 && end != NULL; field++)
		end = strchr(end + 1, ' ');
	if (end != NULL && (strtoul(end, NULL, 10) & 4) != 0) /* PF_EXITING */
		return true;
	return has_kill_pending(pid);
}

bool is_stopped(pid_t pid)
{
	char text[512];
	const char *end = slurp(pid, "stat", text, sizeof text) ? strrchr(text, ')') : NULL;

	return end != NULL && end[1] == ' ' && end[2] == 'T';
}

/* The PID may have been reused: open a pidfd first, then check the program. */
bool signal_command(pid_t pid, int signo)
{
	char path[48], exe[4096];
	int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	bool sent = false;
	ssize_t got;

	if (fd < 0)
		return false;
	snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
	got = readlink(path, exe, sizeof exe - 1);
	exe[got > 0 ? got : 0] = '\0';
	if (strcmp(exe, self) == 0)
		sent = syscall(SYS_pidfd_send_signal, fd, signo, NULL, 0) == 0;
	close(fd);
	return sent;
}
