/* SPDX-License-Identifier: MIT */
/* crowd.h - what the parts of crowd share. */
#ifndef CROWD_H
#define CROWD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { MOST_VISITS = 1 << 16 };

struct visit {
	int64_t arrived, entered;
};

/* Shared by all processes: arrivals, entries, and the number inside. */
struct board {
	atomic_int visits, inside, overlaps;
	struct visit visit[MOST_VISITS];
};

extern const char *self; /* the path of crowd, to start another one */

/* CLOCK_MONOTONIC in ns; sleep for NS; print WHAT and errno, and exit with 70. */
int64_t now(void);
void nap(int64_t ns);
void fail(const char *what);

/* Maps the board in the file PATH; makes the file if it is missing. */
struct board *board_open(const char *path);

/* Run CMD with the words of MORE behind it. */
pid_t start(const char *const *cmd, const char *const more[]);

/* Returns when the process sleeps in a lock call; false if it has ended.  Ten seconds without
 * either fail the test. */
bool until_asleep(pid_t pid);

/* The verbs: each gets its words and returns the exit status. */
int crowd_line(char **argv);
int crowd_judge(char **argv);
int crowd_number(char **argv);
int crowd_stand(char **argv);
int crowd_loops(char **argv);
int crowd_visit(char **argv);
int crowd_writer(char **argv);
int crowd_stay(char **argv);
int crowd_look(char **argv);
int crowd_kills(char **argv);
int crowd_claim(char **argv);
int crowd_dine(char **argv);
int crowd_meal(char **argv);

#endif
