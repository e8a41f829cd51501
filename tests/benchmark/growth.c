/* SPDX-License-Identifier: MIT */
/* How the cost of one process grows with the number of others: the exponent is printed. */
#include <config.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum { MOST_SIZES = 6, TIMES = 20 };

/* The slope of the straight line through the logarithms. */
static double exponent(const int *sizes, const double *costs, int count)
{
	double x, y, sx = 0, sy = 0, sxx = 0, sxy = 0;

	for (int i = 0; i < count; i++) {
		x = log(sizes[i]);
		y = log(costs[i]);
		sx += x;
		sy += y;
		sxx += x * x;
		sxy += x * y;
	}
	return (count * sxy - sx * sy) / (count * sxx - sx * sx);
}

/* SIZES end with 0. */
static void grow(const char *what, const char *key, const char *tool, const int *sizes,
    double (*cost)(const char *tool, int size))
{
	double costs[MOST_SIZES], power;
	char name[64];
	int count = 0;

	if (tool[0] == '\0')
		return;
	for (; count < MOST_SIZES && sizes[count] > 0; count++) {
		costs[count] = cost(tool, sizes[count]);
		snprintf(name, sizeof name, "%s: %d", what, sizes[count]);
		print_value(key, name, 1e6 * costs[count], -1);
	}
	power = exponent(sizes, costs, count);
	printf("  %-44s %10.2f\n", "grows with the power of", power);
	save_value("power", key, power, -1);
}

static double with_waiters(const char *tool, int size)
{
	return handed_on(&(struct entrant){tool, {tool, LOCK, TRUE}, 0}, size);
}

static double mean(const struct entrant *entrant)
{
	double began = now();

	for (int i = 0; i < TIMES; i++)
		if (!run(entrant))
			exit(70);
	return (now() - began) / TIMES;
}

/* All slots but one are in use. */
static double with_slots(const char *tool, int size)
{
	static pid_t holders[1000];
	char number[16];
	double took;

	snprintf(number, sizeof number, "%d", size);
	for (int i = 0; i < size - 1; i++) {
		holders[i] = start((const char *const[]){tool, "-F", "-j", number, "bench.slots",
		    tools.self, "nap", "600000000", NULL});
		usleep(500);
	}
	usleep(200000);
	took = mean(&(struct entrant){"", {tool, "-j", number, "bench.slots", TRUE}, 0});
	for (int i = 0; i < size - 1; i++)
		kill(holders[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	unlink("bench.slots");
	return took;
}

/* SIZE locks for one command, by a shell, which makes the many words. */
static double with_locks(const char *tool, int size)
{
	static char script[16384];
	size_t used = (size_t)snprintf(script, sizeof script, "exec %s", tool);

	mkdir("bench.locks", 0755);
	for (int i = 1; i < size; i++)
		used +=
		    (size_t)snprintf(script + used, sizeof script - used, " -f bench.locks/%d", i);
	snprintf(script + used, sizeof script - used, " bench.locks/0 %s", TRUE);
	return mean(&(struct entrant){"", {"sh", "-c", script}, 0});
}

/* The PID of a process that has ended. */
static pid_t dead(void)
{
	pid_t pid = start((const char *const[]){TRUE, NULL});

	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		exit(70);
	return pid;
}

/* Among SIZE locks of dead holders, one is taken over each time. */
static double with_stale(const char *tool, int size)
{
	char name[64];
	FILE *file;
	double took = 0, began;
	pid_t holder = dead();

	mkdir("bench.stale", 0755);
	for (int i = 0; i < size; i++) {
		snprintf(name, sizeof name, "bench.stale/%d", i);
		file = fopen(name, "w");
		if (file == NULL)
			exit(70);
		fprintf(file, "%ld\n", (long)holder);
		fclose(file);
	}
	for (int i = 0; i < TIMES; i++) {
		snprintf(name, sizeof name, "bench.stale/%d", i % size);
		began = now();
		if (!run(&(struct entrant){"", {tool, "-w", "10", "-m", "excl", name, TRUE}, 0}))
			exit(70);
		took += now() - began;
	}
	output_of("rm -rf bench.stale");
	return took / TIMES;
}

void bench_growth(void)
{
	const char *tool = tools.small[0] != '\0' ? tools.small : tools.semlock;
	static const int waiters[] = {10, 100, 1000, 5000, 0}, slots[] = {1, 10, 100, 1000, 0},
			 locks[] = {1, 10, 100, 0}, stale[] = {1, 10, 100, 1000, 10000, 0};

	print_title("one of so many asleep is served, us");
	grow("flock", "grow-flock", "flock", waiters, with_waiters);
	grow("semlock", "grow-waiters", tool, waiters, with_waiters);
	print_title("one slot is free of so many, us");
	grow("semlock -j", "grow-slots", tool, slots, with_slots);
	print_title("so many locks for one command, by a shell, us");
	grow("semlock -f", "grow-locks", tool, locks, with_locks);
	output_of("rm -rf bench.locks");
	print_title("among so many stale ones in a directory, one is taken over, us");
	grow("semlock -m excl", "grow-stale", tool, stale, with_stale);
}
