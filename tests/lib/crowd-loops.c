/* SPDX-License-Identifier: MIT */
/* Commands in loops: which of them are overtaken, and by which. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crowd.h"

int crowd_visit(char **argv)
{
	struct board *board = board_open(argv[0]);
	int i = atomic_fetch_add(&board->visits, 1);

	if (i < MOST_VISITS)
		board->visit[i] = (struct visit){strtoll(argv[1], NULL, 10), now()};
	if (atomic_fetch_add(&board->inside, 1) != 0)
		atomic_fetch_add(&board->overlaps, 1);
	nap(strtoll(argv[2], NULL, 10) * 1000);
	atomic_fetch_sub(&board->inside, 1);
	return 0;
}

static void one_loop(const char *const *cmd, const char *file, int rounds, const char *hold)
{
	char arrived[32];
	int status;

	for (int i = 0; i < rounds; i++) {
		snprintf(arrived, sizeof arrived, "%lld", (long long)now());
		waitpid(start(cmd, (const char *const[]){self, "visit", file, arrived, hold, NULL}),
		    &status, 0);
	}
}

static int by_entry(const void *a, const void *b)
{
	const struct visit *x = a, *y = b;

	return (x->entered > y->entered) - (x->entered < y->entered);
}

/* Counts the entries that came more than LATE ns after a later arrival's. */
static int overtakes(struct board *board, int n, int64_t late)
{
	int64_t earliest = INT64_MAX;
	int count = 0;

	qsort(board->visit, (size_t)n, sizeof *board->visit, by_entry);
	for (int i = n - 1; i >= 0; i--) {
		count += earliest != INT64_MAX && board->visit[i].arrived > earliest + late;
		if (board->visit[i].arrived < earliest)
			earliest = board->visit[i].arrived;
	}
	return count;
}

int crowd_loops(char **argv)
{
	int n = atoi(argv[0]), rounds = atoi(argv[1]), status, visits;
	char file[] = "crowd.XXXXXX";
	struct board *board;

	close(mkstemp(file));
	board = board_open(file);
	for (int i = 0; i < n; i++)
		if (fork() == 0) {
			one_loop((const char *const *)argv + 4, file, rounds, argv[2]);
			_exit(0);
		}
	while (wait(&status) > 0)
		;
	visits = atomic_load(&board->visits);
	unlink(file);
	printf("visits %d overlaps %d overtakes %d\n", visits, atomic_load(&board->overlaps),
	    overtakes(board, visits, strtoll(argv[3], NULL, 10) * 1000));
	return atomic_load(&board->overlaps) == 0 && visits == n * rounds ? 0 : 1;
}

/* A reader: counted when it gets in. */
int crowd_stay(char **argv)
{
	struct board *board = board_open(argv[0]);

	atomic_fetch_add(&board->visits, 1);
	nap(strtoll(argv[1], NULL, 10) * 1000);
	return 0;
}

/* The writer: counts the readers that have entered before it. */
int crowd_look(char **argv)
{
	struct board *board = board_open(argv[0]);

	atomic_store(&board->inside, atomic_load(&board->visits));
	return 0;
}

static int write_once(const char *const *writing, const char *file, struct board *board,
    int64_t *longest)
{
	int before, status;
	int64_t began;
	pid_t pid = start(writing, (const char *const[]){self, "look", file, NULL});

	if (!until_asleep(pid)) { /* the writer did not have to wait */
		waitpid(pid, &status, 0);
		return 0;
	}
	before = atomic_load(&board->visits);
	began = now();
	waitpid(pid, &status, 0);
	if (now() - began > *longest)
		*longest = now() - began;
	return atomic_load(&board->inside) - before;
}

int crowd_writer(char **argv)
{
	int n = atoi(argv[0]), times = atoi(argv[1]), most = 0, overtaken;
	const char *const reading[] = {argv[3], "-s", argv[4], NULL};
	const char *const writing[] = {argv[3], argv[4], NULL};
	char file[] = "crowd.XXXXXX";
	pid_t *readers = calloc((size_t)n, sizeof *readers);
	struct board *board;
	int64_t longest = 0;

	close(mkstemp(file));
	board = board_open(file);
	for (int i = 0; i < n; i++)
		if ((readers[i] = fork()) == 0)
			for (;;)
				waitpid(start(reading, (const char *const[]){self, "stay", file,
							   argv[2], NULL}),
				    NULL, 0);
	while (atomic_load(&board->visits) < 4 * n)
		nap(1000000);
	for (int i = 0; i < times; i++) {
		overtaken = write_once(writing, file, board, &longest);
		most = overtaken > most ? overtaken : most;
	}
	for (int i = 0; i < n; i++)
		kill(readers[i], SIGKILL);
	unlink(file);
	free(readers);
	printf("written %d overtaken-by-at-most %d longest-wait-us %lld\n", times, most,
	    (long long)(longest / 1000));
	/* each reader may have been before the writer in the queue, once */
	return most <= n ? 0 : 1;
}
