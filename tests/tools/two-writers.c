/* SPDX-License-Identifier: MIT */
/* two-writers - two threads write messages to a pipe that nobody reads, at the same time: no
 * SIGPIPE ends the process, is left pending, or stays ignored. */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "report/error.h"

enum { WRITES = 100000 };

static int output;

static void *write_all(void *wrong)
{
	for (int i = 0; i < WRITES; i++)
		if (write_without_sigpipe(output, "x", 1) != -1 || errno != EPIPE)
			++*(long *)wrong;
	return NULL;
}

int main(void)
{
	long wrong = 0, wrong_there = 0;
	struct sigaction action;
	sigset_t pending, blocked;
	pthread_t other;
	int ends[2];

	if (pipe(ends) != 0 || close(ends[0]) != 0)
		die(EXIT_SYSTEM, "cannot make a pipe: %s", strerror(errno));
	output = ends[1];
	if (pthread_create(&other, NULL, write_all, &wrong_there) != 0)
		die(EXIT_SYSTEM, "cannot start a thread");
	write_all(&wrong);
	pthread_join(other, NULL);
	sigaction(SIGPIPE, NULL, &action);
	sigpending(&pending);
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	printf("wrong %ld, ignored %d, pending %d, blocked %d\n", wrong + wrong_there,
	    action.sa_handler != SIG_DFL, sigismember(&pending, SIGPIPE),
	    sigismember(&blocked, SIGPIPE));
	return 0;
}
