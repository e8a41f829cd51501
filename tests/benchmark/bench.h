/* bench.h - what semlock costs, compared with what else is installed.
 *
 * A contest is one thing to do, and its entrants ways of doing it.  In a round every entrant has
 * its turn several times, another one first each time, and counts by the better quarter of them;
 * so a round gives one ratio to the first entrant, and it matters little how fast the machine is
 * at the moment, and how busy.  Told are the median of the ratios, and the lowest and the highest. */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <sys/types.h>

enum { MOST_WORDS = 24, MOST_ROUNDS = 200, MOST_REPEATS = 50 };

struct entrant {
	const char *name;
	const char *words[MOST_WORDS]; /* ";" between commands that follow each other */
	int status;                    /* what it has to end with; -1: with a failure */
};

/* At most so much of what another one needs. */
struct goal {
	const char *entrant, *than;
	double most;
};

struct contest {
	const char *title, *key; /* for people, and for the plot */
	double (*measure)(const struct entrant *entrant, int number); /* seconds, or a count */
	int number; /* what MEASURE makes of it: how many */
	int rounds, repeats;
	const struct entrant *entrants;
	const struct goal *goals;
};

/* What there is to compare, from the command line.  The names are "" when there is no such. */
struct tools {
	const char *semlock;  /* the usual build */
	const char *small;    /* the static one */
	const char *crowd;    /* tests/crowd */
	const char *least[2]; /* bench-least, which does without everything, both builds */
	const char *self;
	int rounds;
};
extern struct tools tools;

#define LOCK "bench.lock"
#define TRUE "/bin/true"

/* Hold CONTEST and print it.  Entrants whose program is not there are left out. */
void contest(const struct contest *contest);

/* One line of the table that compares nothing: VALUE, at most MOST (-1: no matter). */
void print_value(const char *key, const char *name, double value, double most);

/* The same for the plot alone. */
void save_value(const char *key, const char *name, double value, double most);

/* A title in the table. */
void print_title(const char *title);

/* How many goals were met, and how many there were. */
extern int goals_met, goals_set;

/* Seconds, by a clock that nobody sets; processor seconds of the children waited for. */
double now(void);
double children_cpu(void);

/* Start the words up to the first ";" or NULL, output thrown away. */
pid_t start(const char *const *words);

/* Run all commands of ENTRANT, one after the other.  Returns whether each ended as it has to. */
bool run(const struct entrant *entrant);

/* What COMMAND, of the shell, prints (the first 64 KiB). */
const char *output_of(const char *command);

/* Run it once: seconds. */
double one_run(const struct entrant *entrant, int unused);

/* Lock LOCK for ourselves, by flock(2) and by fcntl(2).  Returns its descriptor. */
int hold(void);

/* Until the process PID sleeps in a lock call, or has ended. */
void until_asleep(pid_t pid);

/* The tools that are behind a LOCK: seconds per waiter from when it is let go until all COUNT
 * sleepers have had it; or for COUNT that are started at once. */
double handed_on(const struct entrant *entrant, int count);
double drained(const struct entrant *entrant, int count);

/* The processor seconds of that. */
double drained_cpu(const struct entrant *entrant, int count);

void bench_start(void);
void bench_crowds(void);
void bench_drain(void); /* a part of the crowds */
void bench_files(void);
void bench_servers(void);
void bench_counts(void);
void bench_growth(void);

#endif
