/* SPDX-License-Identifier: MIT */
/* Many processes at one lock. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum { MOST_WAITERS = 5000 };

struct line_times stand_in_line(const char *const *words, int count)
{
	static pid_t pids[MOST_WAITERS];
	struct line_times times;
	int fd = hold();
	double began = now();

	for (int i = 0; i < count; i++) {
		pids[i] = start(words);
		if (pids[i] < 0)
			exit(70);
		until_asleep(pids[i]);
	}
	times.joined = (now() - began) / count;
	began = now();
	close(fd);
	for (int i = 0; i < count; i++)
		waitpid(pids[i], NULL, 0);
	times.served = (now() - began) / count;
	return times;
}

double handed_on(const struct entrant *entrant, int count)
{
	return stand_in_line(entrant->words, count).served;
}

double drained(const struct entrant *entrant, int count)
{
	double began = now();

	for (int i = 0; i < count; i++)
		start(entrant->words);
	while (wait(NULL) > 0)
		;
	return (now() - began) / count;
}

double drained_cpu(const struct entrant *entrant, int count)
{
	double before = children_cpu();

	drained(entrant, count);
	return (children_cpu() - before) / count;
}

static void hand_on(int waiters, int rounds, int repeats, double most)
{
	char title[80], key[32];
	const struct goal goals[] = {
	    {most > 0 ? "semlock" : "", "flock", most},
	    {most > 0 ? "static semlock" : "", "flock", most},
	    {NULL, NULL, 0},
	};

	snprintf(title, sizeof title, "%d asleep behind a holder, served: each", waiters);
	snprintf(key, sizeof key, "hand-on-%d", waiters);
	contest(&(struct contest){title, key, handed_on, waiters, rounds, repeats,
	    (const struct entrant[]){
		{"flock", {"flock", LOCK, TRUE}, 0},
		{"semlock", {tools.semlock, LOCK, TRUE}, 0},
		{"static semlock", {tools.small, LOCK, TRUE}, 0},
		{NULL, {NULL}, 0},
	    },
	    goals});
}

static void hand_on_holds(void)
{
	static const struct goal goals[] = {{"semlock", "flock", 1.10},
	    {"static semlock", "flock", 1.10}, {NULL, NULL, 0}};

	contest(&(struct contest){"20 asleep, each then holds 1 ms", "hand-on-holds", handed_on, 20,
	    tools.rounds / 2 + 1, 1,
	    (const struct entrant[]){
		{"flock", {"flock", LOCK, tools.self, "nap", "1000"}, 0},
		{"semlock", {tools.semlock, LOCK, tools.self, "nap", "1000"}, 0},
		{"static semlock", {tools.small, LOCK, tools.self, "nap", "1000"}, 0},
		{NULL, {NULL}, 0},
	    },
	    goals});
}

/* GOAL: the ratio of static semlock to flock(1) to reach, or -1. */
static void drain(const char *title, const char *key, const char *command,
    double (*measure)(const struct entrant *entrant, int number), double goal)
{
	const struct goal goals[] = {{goal > 0 ? "static semlock" : "", "flock", goal},
	    {NULL, NULL, 0}};

	if (command[0] == '\0')
		return;
	contest(&(struct contest){title, key, measure, 1000, tools.rounds / 6 + 2, 1,
	    (const struct entrant[]){
		{"flock", {"flock", LOCK, command}, 0},
		{"the command alone", {command}, 0},
		{"semlock", {tools.semlock, LOCK, command}, 0},
		{"static semlock", {tools.small, LOCK, command}, 0},
		{"static semlock -F", {tools.small, "-F", LOCK, command}, 0},
		{"the least there can be", {tools.least[0], LOCK, command}, 0},
		{"the least, static", {tools.least[1], LOCK, command}, 0},
		{NULL, {NULL}, 0},
	    },
	    goals});
}

/* Most of the processor time of 1,000 times true(1) is the start of true(1), which no lock tool
 * can save: the goal is for a command that costs next to nothing. */
void bench_drain(void)
{
	drain("1,000 started at once: time, each", "drain", TRUE, drained, .60);
	drain("1,000 started at once: processor time, each", "drain-cpu", TRUE, drained_cpu, -1);
	drain("1,000 small ones at once: time, each", "drain-small", tools.least[1], drained, .60);
	drain("1,000 small ones at once: processor time, each", "drain-small-cpu", tools.least[1],
	    drained_cpu, .40);
}

/* The number behind WORD in the output of tests/crowd; -1 if crowd failed. */
static double crowd_says(const char *tool, const char *arguments, const char *word)
{
	char command[1024];
	const char *at;

	if (tool[0] == '\0')
		return -1;
	snprintf(command, sizeof command, "rm -f " LOCK " bench.log; %s %s %s " LOCK, tools.crowd,
	    arguments, tool);
	at = strstr(output_of(command), word);
	return at == NULL ? -1 : strtod(at + strlen(word), NULL);
}

static void order(void)
{
	const char *names[] = {"flock", "semlock", "static semlock"};
	const char *paths[] = {"flock", tools.semlock, tools.small};
	int last = tools.small[0] == '\0' ? 1 : 2;

	print_title("8 loops of 100 visits of 1 ms: who came 5 ms later, and got in earlier");
	for (int i = 0; i <= last; i++)
		print_value("overtakes", names[i],
		    crowd_says(paths[i], "loops 8 100 1000 5000", "overtakes "), -1);
	print_title("300 waiters asleep, 75 of them killed: pairs served in the wrong order");
	for (int i = 0; i <= last; i++)
		print_value("inversions", names[i],
		    crowd_says(paths[i], "line 300 75 7 bench.log", "inversions "),
		    i == 0 ? -1 : 0);
	print_title("a writer among 8 endless readers of 20 ms: its longest wait, us (flock(1)'s "
		    "is endless)");
	for (int i = 1; i <= last; i++)
		print_value("writer", names[i],
		    crowd_says(paths[i], "writer 8 20 20000", "longest-wait-us "), 40000);
	unlink("bench.log");
}

void bench_crowds(void)
{
	hand_on(1, tools.rounds, 10, 0);
	hand_on(10, tools.rounds, 3, 0);
	hand_on(100, tools.rounds / 4 + 1, 1, 1.15);
	hand_on(1000, tools.rounds / 10 + 1, 1, 1.30);
	hand_on_holds();
	bench_drain();
	order();
}
