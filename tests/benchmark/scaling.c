/* SPDX-License-Identifier: MIT */
/* What one process costs in a line of 300, 1,000 and 3,000: it must cost the same in each. */
#include <config.h>

#include <stdio.h>

#include "bench.h"

enum { SIZES = 3, TOOLS = 3, ROUNDS = 5 };

static const int sizes[SIZES] = {300, 1000, 3000};

/* Seconds for one process, of each round. */
struct costs {
	double joined[ROUNDS];    /* to start, and to sleep behind those before it */
	double served[ROUNDS];    /* from the release on, until all have had the lock */
	double processor[ROUNDS]; /* of both, its own and its command's */
};

static void measure(const char *tool, int count, struct costs *costs, int round)
{
	const char *const words[] = {tool, LOCK, TRUE, NULL};
	const double before = children_cpu();
	const struct line_times times = stand_in_line(words, count);

	costs->joined[round] = times.joined;
	costs->served[round] = times.served;
	costs->processor[round] = (children_cpu() - before) / count;
}

/* VALUES: microseconds, for each size.  MOST: the limit of the last one by the first one, or -1. */
static void print_row(const char *tool, const char *what, const char *key, const double *values,
    double most)
{
	char name[80];

	for (int size = 0; size < SIZES; size++) {
		snprintf(name, sizeof name, "%s: %s, %d", tool, what, sizes[size]);
		save_value(key, name, values[size], -1);
	}
	snprintf(name, sizeof name, "%-15s %-9s %8.0f %8.0f %8.0f  grows to", tool, what, values[0],
	    values[1], values[2]);
	print_value(key, name, values[SIZES - 1] / values[0], most);
}

void bench_scaling(void)
{
	const char *const names[TOOLS] = {"flock", "semlock", "static semlock"};
	const char *const paths[TOOLS] = {"flock", tools.semlock, tools.small};
	static struct costs costs[TOOLS][SIZES];
	const int rounds = tools.rounds < 4 * ROUNDS ? tools.rounds / 4 + 1 : ROUNDS;
	double joined[SIZES], served[SIZES], processor[SIZES], most;

	print_title("a line of 300, 1,000, 3,000: us for each to join it, to be served; processor");
	for (int round = 0; round < rounds; round++)
		for (int size = 0; size < SIZES; size++)
			for (int i = 0; i < TOOLS; i++) {
				const int tool = (round + i) % TOOLS;

				if (paths[tool][0] != '\0')
					measure(paths[tool], sizes[size], &costs[tool][size],
					    round);
			}
	for (int tool = 0; tool < TOOLS; tool++) {
		if (paths[tool][0] == '\0')
			continue;
		for (int size = 0; size < SIZES; size++) {
			joined[size] = 1e6 * median(costs[tool][size].joined, rounds);
			served[size] = 1e6 * median(costs[tool][size].served, rounds);
			processor[size] = 1e6 * median(costs[tool][size].processor, rounds);
		}
		most = tool == 0 ? -1 : 1.10;
		print_row(names[tool], "joins", "scaling-joined", joined, -1);
		print_row(names[tool], "served", "scaling-served", served, most);
		print_row(names[tool], "processor", "scaling-processor", processor, most);
	}
}
