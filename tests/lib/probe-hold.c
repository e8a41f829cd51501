/* SPDX-License-Identifier: MIT */
/* probe-hold.c - commands to run under a lock: each announces itself, and waits. */
#include <config.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "probe.h"

/* FIFOs are opened for reading and writing: open(2) never waits for the other side, and a line
 * stays in the FIFO until the test has read it. */
int open_fifo(const char *name)
{
	int fd = open(name, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		fail("cannot open the FIFO", name);
	return fd;
}

void say_ready(int up)
{
	char line[32];
	int n = snprintf(line, sizeof line, "ready %d\n", (int)getpid());

	if (write(up, line, (size_t)n) != n)
		fail("cannot write", "up");
}

static int wait_for_byte(int down)
{
	char c;

	while (read(down, &c, 1) < 0)
		if (errno != EINTR)
			fail("cannot read", "down");
	return 0;
}

static int hold_until_told(int up, int down)
{
	say_ready(up);
	return wait_for_byte(down);
}

/* hold UP DOWN: writes "ready PID" on FIFO UP, ends when a byte comes down DOWN. */
int cmd_hold(int argc, char **argv)
{
	if (argc != 3)
		misuse("hold UP DOWN");
	return hold_until_told(open_fifo(argv[1]), open_fifo(argv[2]));
}

struct fifos {
	int up, down;
};

static void *hold_in_thread(void *context)
{
	const struct fifos *fifos = context;

	exit(hold_until_told(fifos->up, fifos->down));
}

/* hold-in-thread UP DOWN: the same, in a thread that lives on when main() has ended its own. */
int cmd_hold_in_thread(int argc, char **argv)
{
	static struct fifos fifos;
	pthread_t thread;

	if (argc != 3)
		misuse("hold-in-thread UP DOWN");
	fifos = (struct fifos){open_fifo(argv[1]), open_fifo(argv[2])};
	if (pthread_create(&thread, NULL, hold_in_thread, &fifos) != 0)
		fail("cannot start a thread", "hold-in-thread");
	pthread_exit(NULL);
}

/* closefrom-then-hold UP DOWN: first closes all that it did not open, as sudo does. */
int cmd_closefrom_then_hold(int argc, char **argv)
{
	if (argc != 3)
		misuse("closefrom-then-hold UP DOWN");
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	return hold_until_told(open_fifo(argv[1]), open_fifo(argv[2]));
}

/* leave-behind UP DOWN: starts a daemon that holds; ends with 0 when the daemon has written its
 * line. */
int cmd_leave_behind(int argc, char **argv)
{
	int said[2], up, down;
	pid_t pid;
	char c;

	if (argc != 3)
		misuse("leave-behind UP DOWN");
	if (pipe(said) != 0 || (pid = fork()) < 0)
		fail("cannot fork", "leave-behind");
	if (pid > 0) {
		close(said[1]);
		return read(said[0], &c, 1) == 0 ? 0 : 71;
	}
	close(said[0]);
	setsid();
	up = open_fifo(argv[1]);
	down = open_fifo(argv[2]);
	say_ready(up);
	close(said[1]);
	return wait_for_byte(down);
}

/* fds FILE: writes "N TARGET" into FILE for each descriptor it was started with. */
int cmd_fds(int argc, char **argv)
{
	char path[64], target[PATH_MAX];
	char text[65536];
	size_t used = 0;
	int out;

	if (argc != 2)
		misuse("fds FILE");
	for (int fd = 0; fd < 1024 && used < sizeof text - PATH_MAX - 64; fd++) {
		ssize_t n;
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof target - 1);
		if (n < 0)
			continue;
		target[n] = '\0';
		used += (size_t)snprintf(text + used, sizeof text - used, "%d %s\n", fd, target);
	}
	out = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (out < 0 || write(out, text, used) != (ssize_t)used)
		fail("cannot write", argv[1]);
	return 0;
}
