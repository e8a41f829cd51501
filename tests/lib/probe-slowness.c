/* SPDX-License-Identifier: MIT */
/* probe-slowness.c - how much slower than usual this machine starts processes now.
 *
 * Tests spend most of their time in fork(2) and execve(2).  A virtual machine without hardware
 * support, a machine with other work, and a container with a part of a processor all make these
 * slow, and leases and deadlines that suit a fast machine too short. */
#include <config.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "probe.h"

enum {
	STARTS = 60,
	USUAL_MS = 75, /* what STARTS take on a quiet machine of 2020 and later, at most */
	MOST = 20      /* beyond this, a test would rather fail than wait */
};

static int start_and_wait(char *self)
{
	char nothing[] = "nothing", *argv[] = {self, nothing, NULL};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		execv("/proc/self/exe", argv);
		_exit(127);
	}
	if (pid < 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return 0;
}

/* nothing: ends at once. */
int cmd_nothing(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

/* slowness: prints how many times longer than usual a start takes, from 1 to 20. */
int cmd_slowness(int argc, char **argv)
{
	long long began = now_ms(), factor;

	(void)argc;
	for (int i = 0; i < STARTS; i++)
		if (start_and_wait(argv[0]) != 0)
			fail("cannot start", "itself");
	factor = (now_ms() - began + USUAL_MS / 2) / USUAL_MS;
	printf("%lld\n", factor < 1 ? 1 : factor > MOST ? MOST : factor);
	return 0;
}
