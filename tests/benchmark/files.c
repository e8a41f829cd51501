/* SPDX-License-Identifier: MIT */
/* Locks made of files. */
#include <config.h>

#include <stdio.h>
#include <unistd.h>

#include "bench.h"

#define DOTLOCK "dotlockfile -l -r 1000 bench.dot && " TRUE "; dotlockfile -u bench.dot"
#define LOCKFILE "lockfile -1 bench.lockfile && " TRUE "; rm -f bench.lockfile"
#define MKDIR "until mkdir bench.dir 2>/dev/null; do sleep .05; done; " TRUE "; rmdir bench.dir"

/* The tools, each by its method; MOST: the ratio to flock(1) to reach, or -1. */
static void among_methods(const char *title, const char *key,
    double (*measure)(const struct entrant *entrant, int number), int number, int rounds,
    int repeats, double most)
{
	const char *tool = tools.small[0] != '\0' ? tools.small : tools.semlock;
	const struct entrant entrants[] = {
	    {"flock", {"flock", LOCK, TRUE}, 0},
	    {"semlock, the kernel's", {tool, LOCK, TRUE}, 0},
	    {"semlock -m excl", {tool, "-m", "excl", "bench.excl", TRUE}, 0},
	    {"semlock -m link", {tool, "-m", "link", "bench.link", TRUE}, 0},
	    {"semlock -m mkdir", {tool, "-m", "mkdir", "bench.mkdir", TRUE}, 0},
	    {"semlock -m rename", {tool, "--init", "-m", "rename", "bench.rename", TRUE}, 0},
	    {"semlock -m symlink", {tool, "-m", "symlink", "bench.symlink", TRUE}, 0},
	    {NULL, {NULL}, 0},
	};
	const struct goal goals[] = {
	    {"semlock -m excl", "flock", most},
	    {"semlock -m link", "flock", most},
	    {"semlock -m mkdir", "flock", most},
	    {"semlock -m rename", "flock", most},
	    {"semlock -m symlink", "flock", most},
	    {NULL, NULL, 0},
	};

	contest(&(struct contest){title, key, measure, number, rounds, repeats, entrants,
	    most > 0 ? goals : NULL});
}

/* lockfile(1) and dotlockfile(1) poll once a second or less often. */
static void among_others(const char *title, const char *key,
    double (*measure)(const struct entrant *entrant, int number), int number, int rounds,
    int repeats)
{
	const struct entrant entrants[] = {
	    {"semlock -m link", {tools.semlock, "-m", "link", "bench.link", TRUE}, 0},
	    {"semlock -m mkdir", {tools.semlock, "-m", "mkdir", "bench.mkdir", TRUE}, 0},
	    {"lockfile -1, rm", {"sh", "-c", LOCKFILE}, 0},
	    {"dotlockfile -l, -u", {"sh", "-c", DOTLOCK}, 0},
	    {"a loop of mkdir, sleep .05", {"sh", "-c", MKDIR}, 0},
	    {NULL, {NULL}, 0},
	};

	contest(&(struct contest){title, key, measure, number, rounds, repeats, entrants, NULL});
}

void bench_files(void)
{
	int few = tools.rounds / 4 + 1;

	among_methods("a lock made of files, nobody else there", "file-wrap", one_run, 0,
	    tools.rounds / 2 + 1, 10, -1);
	among_others("the same, other people's", "file-wrap-others", one_run, 0, few, 5);
	among_methods("2 started at once", "file-2", drained, 2, tools.rounds / 2 + 1, 5, 5);
	among_methods("10 started at once", "file-10", drained, 10, tools.rounds / 2 + 1, 3, 2);
	among_methods("100 started at once", "file-100", drained, 100, few, 1, 2);
	among_methods("100 started at once: processor time", "file-100-cpu", drained_cpu, 100, few,
	    1, 3);
	among_methods("1,000 started at once", "file-1000", drained, 1000, tools.rounds / 10 + 1, 1,
	    2);
	among_others("5 started at once, other people's", "file-5-others", drained, 5, 2, 1);
	unlink("bench.rename");
}
