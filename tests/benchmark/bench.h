/* SPDX-License-Identifier: MIT */
/* bench.h - what semlock costs, compared with other installed tools.
 *
 * A contest is one task, and its entrants are ways of doing it.  In a round every entrant runs
 * several times, the first place rotates, and the better quarter of its runs counts; so a round
 * gives one ratio to the first entrant, which depends little on the speed and load of the machine.
 * The table has the median of the ratios, the lowest and the highest. */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <sys/types.h>

enum { MOST_WORDS = 24, MOST_ROUNDS = 200, MOST_REPEATS = 50 };

struct entrant {
	const char *name;
	const char *words[MOST_WORDS]; /* ";" between commands that follow each other */
	int status;                    /* the expected exit status; -1: a failure */
};

/* ENTRANT may need at most MOST times what THAN needs. */
struct goal {
	const char *entrant, *than;
	double most;
};

struct contest {
	const char *title, *key; /* for the table, and for the plot */
	double (*measure)(const struct entrant *entrant, int number); /* seconds, or a count */
	int number;                                                   /* the count for MEASURE */
	int rounds, repeats;
	const struct entrant *entrants;
	const struct goal *goals;
};

/* The programs to compare, from the command line; "" if missing. */
struct tools {
	const char *semlock;  /* the usual build */
	const char *small;    /* the static one */
	const char *crowd;    /* tests/crowd */
	const char *least[2]; /* bench-least, the minimal tool, both builds */
	const char *self;
	int rounds;
};
extern struct tools tools;

#define LOCK "bench.lock"
#define TRUE "/bin/true"

/* Runs CONTEST and prints it.  Leaves out entrants whose program is missing. */
void contest(const struct contest *contest);

/* Sorts the COUNT values.  Returns the one in the middle. */
double median(double *values, int count);

/* Prints a line of the table without comparison: VALUE, at most MOST (-1: no limit). */
void print_value(const char *key, const char *name, double value, double most);

/* Writes the same line for the plot alone. */
void save_value(const char *key, const char *name, double value, double most);

/* A title in the table. */
void print_title(const char *title);

/* Counts the goals that were met, and all goals. */
extern int goals_met, goals_set;

/* Seconds of a clock that cannot be set; processor seconds of the children waited for. */
double now(void);
double children_cpu(void);

/* Starts the words up to the first ";" or NULL, output to /dev/null. */
pid_t start(const char *const *words);

/* Runs all commands of ENTRANT, one after the other.  Returns whether each ended as expected. */
bool run(const struct entrant *entrant);

/* The first 64 KiB that COMMAND, of the shell, prints. */
const char *output_of(const char *command);

/* The seconds of one run. */
double one_run(const struct entrant *entrant, int unused);

/* Takes LOCK by flock(2) and by fcntl(2).  Returns its descriptor. */
int hold(void);

/* Returns when the process PID sleeps in a lock call, or has ended. */
void until_asleep(pid_t pid);

/* Seconds per waiter: to start and fall asleep, one after the other; and from the release until all
 * have had the lock. */
struct line_times {
	double joined, served;
};

/* Starts the command of WORDS COUNT times, at most 5,000, while the lock is held; then releases it,
 * and waits until all have ended. */
struct line_times stand_in_line(const char *const *words, int count);

/* handed_on: seconds per waiter from the release until all COUNT sleepers have had the lock.
 * drained: the same for COUNT tools that are started at once. */
double handed_on(const struct entrant *entrant, int count);
double drained(const struct entrant *entrant, int count);

/* The processor seconds of drained. */
double drained_cpu(const struct entrant *entrant, int count);

void bench_start(void);
void bench_crowds(void);
void bench_drain(void); /* a part of the crowds */
void bench_files(void);
void bench_looking(void);
void bench_servers(void);
void bench_counts(void);
void bench_growth(void);
void bench_scaling(void);

#endif
