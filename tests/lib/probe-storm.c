/* SPDX-License-Identifier: MIT */
/* probe-storm.c - starts one command thousands of times, and counts exit statuses and hangs. */
#include <config.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "probe.h"

enum { MOST_JOBS = 64 };

static pid_t running[MOST_JOBS];

static pid_t launch(char **command, const sigset_t *mask)
{
	pid_t pid = fork();

	if (pid < 0)
		fail("cannot fork", command[0]);
	if (pid == 0) {
		sigprocmask(SIG_SETMASK, mask, NULL);
		become(command);
	}
	return pid;
}

/* The exit status of a process that has ended, whose slot is free again; -1: none ended in time. */
static int reap(const sigset_t *chld, int jobs)
{
	struct timespec limit = {PATIENCE_MS / 1000, 0};
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) == 0)
		if (sigtimedwait(chld, NULL, &limit) < 0 && errno == EAGAIN)
			return -1;
	for (int i = 0; i < jobs; i++)
		if (running[i] == pid)
			running[i] = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int gave_up(int jobs)
{
	for (int i = 0; i < jobs; i++)
		if (running[i] > 0)
			kill(running[i], SIGKILL);
	puts("hung");
	return 1;
}

/* storm COUNT JOBS COMMAND...: runs COMMAND COUNT times, JOBS at a time; prints "STATUS x TIMES"
 * for each exit status, or "hung" if no process ends for PATIENCE_MS. */
int cmd_storm(int argc, char **argv)
{
	static long seen[256];
	sigset_t chld, mask;
	long left, alive = 0;
	int jobs;

	if (argc < 4)
		misuse("storm COUNT JOBS COMMAND...");
	left = number(argv[1]);
	jobs = (int)number(argv[2]);
	if (jobs < 1 || jobs > MOST_JOBS)
		misuse("storm: 1 to 64 jobs");
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, &mask);
	while (left > 0 || alive > 0) {
		int status;
		for (int i = 0; i < jobs && left > 0; i++) {
			if (running[i] != 0)
				continue;
			running[i] = launch(argv + 3, &mask);
			left--;
			alive++;
		}
		status = reap(&chld, jobs);
		if (status < 0)
			return gave_up(jobs);
		seen[status & 255]++;
		alive--;
	}
	for (int i = 0; i < 256; i++)
		if (seen[i] > 0)
			printf("%d x %ld\n", i, seen[i]);
	return 0;
}
