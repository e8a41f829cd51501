/* SPDX-License-Identifier: MIT */
/* Rounds, ratios, and the table. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

enum { MOST_ENTRANTS = 24 };

int goals_met, goals_set;

/* The ratios of a contest, and its seconds. */
struct result {
	const struct entrant *entrant;
	double took[MOST_ROUNDS];
};

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct spread {
	double low, median, high;
};

static struct spread spread_of(double *values, int count)
{
	qsort(values, (size_t)count, sizeof *values, by_size);
	return (struct spread){values[0], values[count / 2], values[count - 1]};
}

double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof *values, by_size);
	return values[count / 2];
}

static double best_quarter(double *values, int count)
{
	qsort(values, (size_t)count, sizeof *values, by_size);
	return values[count / 4];
}

static struct spread compare(const struct result *one, const struct result *other, int rounds)
{
	double ratios[MOST_ROUNDS] = {0};

	for (int i = 0; i < rounds; i++)
		ratios[i] = one->took[i] / other->took[i];
	return spread_of(ratios, rounds);
}

static struct spread absolute(const struct result *result, int rounds)
{
	double copy[MOST_ROUNDS];

	memcpy(copy, result->took, (size_t)rounds * sizeof *copy);
	return spread_of(copy, rounds);
}

void save_value(const char *key, const char *name, double value, double most)
{
	FILE *file = fopen("bench.tsv", "a");

	if (file == NULL)
		return;
	fprintf(file, "%s\t%s\t%.6g\t%.6g\n", key, name, value, most);
	fclose(file);
}

static const char *judge(double value, double most)
{
	goals_set++;
	goals_met += value <= most;
	return value <= most ? "met" : "MISSED";
}

void print_title(const char *title)
{
	printf("\n%s\n", title);
	fflush(stdout);
}

void print_value(const char *key, const char *name, double value, double most)
{
	printf("  %-44s %10.6g", name, value);
	if (most >= 0)
		printf("   target %g: %s", most, value < 0 ? judge(1, 0) : judge(value, most));
	printf("%s\n", value < 0 ? "   it failed" : "");
	fflush(stdout);
	save_value(key, name, value, most);
}

static const struct result *named(const struct result *results, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(results[i].entrant->name, name) == 0)
			return &results[i];
	return NULL;
}

/* A goal that does not compare with the first line has a line of its own. */
static void print_result(const struct contest *contest, const struct result *results, int count,
    int i)
{
	const struct result *base = &results[0], *than;
	struct spread ratio = compare(&results[i], base, contest->rounds);
	const struct goal *goal = contest->goals;
	double most = 0;

	printf("  %-32s %6.2f [%.2f - %.2f] %9.0f us", results[i].entrant->name, ratio.median,
	    ratio.low, ratio.high, 1e6 * absolute(&results[i], contest->rounds).median);
	for (; goal != NULL && goal->entrant != NULL; goal++) {
		than = named(results, count, goal->than);
		if (strcmp(goal->entrant, results[i].entrant->name) != 0 || than == NULL)
			continue;
		if (than == base) {
			most = goal->most;
			printf("   target %.2f: %s", most, judge(ratio.median, most));
		} else {
			ratio = compare(&results[i], than, contest->rounds);
			printf("\n  %30s / %-12s %6.2f [%.2f - %.2f]   target %.2f: %s", "",
			    goal->than, ratio.median, ratio.low, ratio.high, goal->most,
			    judge(ratio.median, goal->most));
		}
	}
	printf("\n");
	save_value(contest->key, results[i].entrant->name,
	    compare(&results[i], base, contest->rounds).median, most);
}

/* True if the entrant's program exists and ends as expected. */
static bool takes_part(const struct entrant *entrant)
{
	int fd = entrant->status < 0 ? hold() : -1;
	bool does = run(entrant);

	if (fd >= 0)
		close(fd);
	return does;
}

/* All entrants in turn, then all again: other load of the machine meets all alike. */
static void go_round(const struct contest *contest, struct result *results, int count, int round)
{
	static double took[MOST_ENTRANTS][MOST_REPEATS];
	int which;

	for (int turn = 0; turn < contest->repeats; turn++)
		for (int i = 0; i < count; i++) {
			which = (round + turn + i) % count;
			took[which][turn] =
			    contest->measure(results[which].entrant, contest->number);
		}
	for (int i = 0; i < count; i++)
		results[i].took[round] = best_quarter(took[i], contest->repeats);
}

void contest(const struct contest *contest)
{
	static struct result results[MOST_ENTRANTS];
	int count = 0;

	print_title(contest->title);
	for (int i = 0; contest->entrants[i].name != NULL && count < MOST_ENTRANTS; i++)
		if (contest->entrants[i].words[0][0] == '\0')
			continue; /* not built */
		else if (takes_part(&contest->entrants[i]))
			results[count++].entrant = &contest->entrants[i];
		else
			printf("  %-32s not here, or does not do it\n", contest->entrants[i].name);
	for (int round = 0; round < contest->rounds; round++)
		go_round(contest, results, count, round);
	for (int i = 0; i < count; i++)
		print_result(contest, results, count, i);
	fflush(stdout);
}
