/* SPDX-License-Identifier: MIT */
/* One process at a time: the cost of a start, of a refusal, of a timeout. */
#include <config.h>

#include <stdio.h>
#include <unistd.h>

#include "bench.h"

static double refusal(const struct entrant *entrant, int unused)
{
	int fd = hold();
	double took = one_run(entrant, unused);

	close(fd);
	return took;
}

/* The time beyond the 50 ms of the timeout. */
static double overshoot(const struct entrant *entrant, int unused)
{
	return refusal(entrant, unused) - 0.05;
}

static void wrap(void)
{
	const struct entrant entrants[] = {
	    {"flock", {"flock", LOCK, TRUE}, 0},
	    {"the command alone", {TRUE}, 0},
	    {"semlock", {tools.semlock, LOCK, TRUE}, 0},
	    {"static semlock", {tools.small, LOCK, TRUE}, 0},
	    {"flock -F", {"flock", "-F", LOCK, TRUE}, 0},
	    {"semlock -F", {tools.semlock, "-F", LOCK, TRUE}, 0},
	    {"static semlock -F", {tools.small, "-F", LOCK, TRUE}, 0},
	    {"semlock -j 4", {tools.semlock, "-j", "4", LOCK ".slots", TRUE}, 0},
	    {"semlock -m ofd", {tools.semlock, "-m", "ofd", LOCK, TRUE}, 0},
	    {"the least there can be", {tools.least[0], LOCK, TRUE}, 0},
	    {"the least, static", {tools.least[1], LOCK, TRUE}, 0},
	    {"setlock", {"setlock", LOCK, TRUE}, 0},
	    {"chpst -l", {"chpst", "-l", LOCK, TRUE}, 0},
	    {"s6-setlock", {"s6-setlock", LOCK, TRUE}, 0},
	    {"lckdo", {"lckdo", LOCK, TRUE}, 0},
	    {"with-lock-ex -w", {"with-lock-ex", "-w", LOCK, TRUE}, 0},
	    {"busybox flock", {"busybox", "flock", LOCK, TRUE}, 0},
	    {NULL, {NULL}, 0},
	};
	static const struct goal goals[] = {
	    {"static semlock", "flock", .60},
	    {"static semlock", "the command alone", 1.40},
	    {"static semlock -F", "flock", .50},
	    {"static semlock -F", "the command alone", 1.15},
	    {"semlock", "flock", .92},
	    {"semlock -F", "flock", .80},
	    {NULL, NULL, 0},
	};

	contest(&(struct contest){"TOOL LOCK " TRUE ", nobody else there", "wrap", one_run, 0,
	    tools.rounds, 20, entrants, goals});
}

static void refuse(void)
{
	const struct entrant entrants[] = {
	    {"flock -n", {"flock", "-n", LOCK, TRUE}, -1},
	    {"semlock -n", {tools.semlock, "-n", LOCK, TRUE}, -1},
	    {"static semlock -n", {tools.small, "-n", LOCK, TRUE}, -1},
	    {"setlock -n", {"setlock", "-n", LOCK, TRUE}, -1},
	    {"chpst -L", {"chpst", "-L", LOCK, TRUE}, -1},
	    {"s6-setlock -n", {"s6-setlock", "-n", LOCK, TRUE}, -1},
	    {"with-lock-ex -f", {"with-lock-ex", "-f", LOCK, TRUE}, -1},
	    {"busybox flock -n", {"busybox", "flock", "-n", LOCK, TRUE}, -1},
	    {NULL, {NULL}, 0},
	};
	static const struct goal goals[] = {{"static semlock -n", "flock -n", .30},
	    {NULL, NULL, 0}};

	contest(&(struct contest){"TOOL -n LOCK, refused", "refuse", refusal, 0, tools.rounds, 20,
	    entrants, goals});
}

static void give_up(void)
{
	const struct entrant entrants[] = {
	    {"flock -w", {"flock", "-w", "0.05", LOCK, TRUE}, -1},
	    {"semlock -w", {tools.semlock, "-w", "0.05", LOCK, TRUE}, -1},
	    {"static semlock -w", {tools.small, "-w", "0.05", LOCK, TRUE}, -1},
	    {NULL, {NULL}, 0},
	};
	static const struct goal goals[] = {{"static semlock -w", "flock -w", .50},
	    {NULL, NULL, 0}};

	contest(&(struct contest){"TOOL -w 0.05 LOCK, busy: how much later than asked", "overshoot",
	    overshoot, 0, tools.rounds, 5, entrants, goals});
}

/* Twenty times in one shell, whose start is included. */
static void from_sh(void)
{
	static char script[3][400];
	const char *names[] = {"flock", tools.semlock, tools.small};

	for (int i = 0; i < 3; i++)
		snprintf(script[i], sizeof script[i],
		    "exec 9>>" LOCK "; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 "
		    "20; do %s 9 || exit 9; done",
		    names[i]);
	contest(
	    &(struct contest){"TOOL 9, twenty times in a shell", "fd", one_run, 0, tools.rounds, 1,
		(const struct entrant[]){
		    {"flock", {"sh", "-c", script[0]}, 0},
		    {"semlock", {"sh", "-c", script[1]}, 0},
		    {"static semlock", {tools.small[0] == '\0' ? "" : "sh", "-c", script[2]}, 0},
		    {NULL, {NULL}, 0},
		},
		NULL});
}

/* A Perl program: apart from the others, since it is far slower. */
static void sem(void)
{
	contest(&(struct contest){"up to four at a time", "sem", one_run, 0, 3, 3,
	    (const struct entrant[]){
		{"flock", {"flock", LOCK, TRUE}, 0},
		{"semlock -j 4", {tools.semlock, "-j", "4", LOCK ".slots", TRUE}, 0},
		{"sem -j 4 --fg", {"sem", "-j", "4", "--fg", "--id", "bench", TRUE}, 0},
		{NULL, {NULL}, 0},
	    },
	    NULL});
	unlink(LOCK ".slots");
}

void bench_start(void)
{
	wrap();
	refuse();
	give_up();
	from_sh();
	sem();
}
