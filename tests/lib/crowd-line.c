/* SPDX-License-Identifier: MIT */
/* Waiters whose order of arrival is certain: the order in which they are served. */
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

int crowd_number(char **argv)
{
	int fd = open(argv[0], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	char line[64];
	int n = snprintf(line, sizeof line, "%s %lld\n", argv[1], (long long)now());

	return write(fd, line, (size_t)n) == n ? 0 : 70;
}

/* Nanoseconds.  A lock that is free for this long may go to a later waiter, for the next in turn is
 * delayed: no series of looks at the lock is shorter (take_deserted in src/lock/taking.c). */
#define LONG_PAUSE INT64_C(50000000)
/* And within so much time after it to further ones, which have looked through the same pause: no
 * series is longer. */
#define ITS_WAKE INT64_C(250000000)

/* BEGAN: when the holder was released, ns; 0: with the first waiter's turn.  A waiter served after
 * a LONG_PAUSE, or in ITS_WAKE, has passed by none in *inversions; *held_up: by how many inversions
 * the count is less. */
static int count_log(const char *path, int64_t began, int *inversions, int *held_up)
{
	FILE *log = fopen(path, "r");
	int lines = 0, number, last = -1, last_prompt = -1;
	long long at, before = began, resumed = began - ITS_WAKE;

	while (log != NULL && fscanf(log, "%d %lld", &number, &at) == 2) {
		if (lines == 0 && began == 0)
			before = at, resumed = at - ITS_WAKE;
		*held_up += number < last;
		last = number;
		if (at - before >= LONG_PAUSE)
			resumed = at;
		else
			*inversions += number < last_prompt;
		if (at - resumed >= ITS_WAKE)
			last_prompt = number;
		before = at;
		lines++;
	}
	*held_up -= *inversions;
	if (log != NULL)
		fclose(log);
	return lines;
}

int crowd_line(char **argv)
{
	int n = atoi(argv[0]), kills = atoi(argv[1]), killed = 0, inversions = 0, held_up = 0,
	    served, status;
	unsigned seed = (unsigned)atoi(argv[2]);
	pid_t *pids = calloc((size_t)n, sizeof *pids);
	char *log = argv[3], number[16];
	int let_go[2];
	int64_t began;
	pid_t holder;

	if (pids == NULL || pipe(let_go) != 0)
		fail("line");
	fcntl(let_go[1], F_SETFD, FD_CLOEXEC);
	snprintf(number, sizeof number, "%d", let_go[0]);
	holder = start((const char *const *)argv + 4,
	    (const char *const[]){self, "stand", number, log, NULL});
	while (access(log, F_OK) != 0)
		nap(100000);
	close(let_go[0]);
	for (int i = 0; i < n; i++) {
		snprintf(number, sizeof number, "%d", i);
		pids[i] = start((const char *const *)argv + 4,
		    (const char *const[]){self, "number", log, number, NULL});
		if (!until_asleep(pids[i]))
			return 1; /* the command did not wait: the lock does not exclude */
	}
	while (killed < kills) {
		int i = (int)((unsigned)rand_r(&seed) % (unsigned)n);

		if (pids[i] > 0 && kill(pids[i], SIGKILL) == 0) {
			waitpid(pids[i], NULL, 0);
			pids[i] = -1;
			killed++;
		}
	}
	began = now();
	close(let_go[1]);
	waitpid(holder, &status, 0);
	for (int i = 0; i < n; i++)
		if (pids[i] > 0)
			waitpid(pids[i], &status, 0);
	free(pids);
	served = count_log(log, began, &inversions, &held_up);
	printf("waiters %d killed %d served %d inversions %d held-up %d\n", n, killed, served,
	    inversions, held_up);
	return served == n - killed && inversions == 0 ? 0 : 1;
}

int crowd_judge(char **argv)
{
	int inversions = 0, held_up = 0;
	int served = count_log(argv[0], 0, &inversions, &held_up);

	printf("served %d inversions %d held-up %d\n", served, inversions, held_up);
	return inversions == 0 ? 0 : 1;
}

/* The holder: makes the log, and runs until the other end of the pipe is closed. */
int crowd_stand(char **argv)
{
	int fd = open(argv[1], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	char c;

	if (fd < 0)
		return 70;
	while (read(atoi(argv[0]), &c, 1) > 0)
		;
	return 0;
}
