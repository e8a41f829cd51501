/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "naive.h"
#include "torture.h"

static int break_in(const char *method, const char *semlock, int slot)
{
	char number[16];

	snprintf(number, sizeof number, "%d", slot);
	execl(semlock, semlock, "-n", "-m", method, "lock", self, "win", number, (char *)NULL);
	return 2;
}

/* A command that dies with its semlock becomes a child of this process, whose end waitpid(2)
 * reports: while the command is dying, it may still hold the lock. */
void make_stale(const char *method, const char *semlock)
{
	pid_t pid;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid = fork();
	if (pid == 0) {
		if (naive_is(method))
			_exit(naive_run(method, "lock", self, "die"));
		execl(semlock, semlock, "-m", method, "lock", self, "die", (char *)NULL);
		_exit(2);
	}
	while (wait(NULL) > 0)
		;
	prctl(PR_SET_CHILD_SUBREAPER, 0);
}

int breakers(const char *method, const char *semlock, int rounds, int count)
{
	int good = 0;

	for (int round = 0; round < rounds; round++) {
		int start_pipe[2];
		long won;
		char word;

		make_stale(method, semlock);
		atomic_store(&board->breakers, count);
		atomic_store(&board->winners, 0);
		atomic_store(&board->ended, 0);
		if (pipe(start_pipe) != 0)
			fatal("pipe");
		for (int slot = 0; slot < count; slot++)
			if (fork() == 0) {
				close(start_pipe[1]);
				if (read(start_pipe[0], &word, 1) != 0)
					_exit(2);
				close(start_pipe[0]);
				_exit(break_in(method, semlock, slot));
			}
		close(start_pipe[0]);
		close(start_pipe[1]); /* go */
		while (wait(NULL) > 0)
			atomic_fetch_add(&board->ended, 1);
		won = atomic_load(&board->winners);
		good += won == 1;
		if (won != 1)
			printf("round %d: %ld winners\n", round + 1, won);
	}
	printf("%s: %d rounds of %d breakers, exactly one winner in %d\n", method, rounds, count,
	    good);
	return good == rounds ? 0 : 1;
}
