/* SPDX-License-Identifier: MIT */
/* Figures that do not depend on load: system calls, instructions, page faults. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

struct way {
	const char *name, *command;
	double most;
};

/* The tool's own calls, with the last exit, and the exec of the command that replaces the tool. */
static void system_calls(const struct way *way)
{
	char command[1024];
	const char *count;

	snprintf(command, sizeof command,
	    "strace -o bench.trace %s >/dev/null 2>&1; awk '/^[a-z_0-9]+[(]/ && execs < 2 { "
	    "calls++ } "
	    "/^execve[(]/ { execs++ } END { print calls }' bench.trace",
	    way->command);
	count = output_of(command);
	if (strtod(count, NULL) > 1)
		print_value("calls", way->name, strtod(count, NULL), way->most);
}

/* In user space, with the dynamic linker; without the command that the tool execs. */
static void instructions(const struct way *way)
{
	char command[1024];
	const char *at;

	snprintf(command, sizeof command,
	    "valgrind --tool=callgrind --callgrind-out-file=/dev/null %s 2>&1", way->command);
	at = strstr(output_of(command), "Collected : ");
	if (at != NULL)
		print_value("instructions", way->name, strtod(at + strlen("Collected : "), NULL),
		    -1);
}

static int by_number(const void *a, const void *b)
{
	const int *one = a, *other = b;

	return *one - *other;
}

/* With the command's page faults, which are a part of the time.  The median, for the number depends
 * on where the kernel happens to put the program. */
static void page_faults(const struct way *way, double most)
{
	enum { STARTS = 21 };
	char *words[MOST_WORDS] = {NULL}, line[256], *rest = line;
	int counts[STARTS], status;
	struct rusage used;
	pid_t pid;

	snprintf(line, sizeof line, "%s", way->command);
	for (int i = 0; i < MOST_WORDS - 1 && (words[i] = strsep(&rest, " ")) != NULL; i++)
		;
	for (int i = 0; i < STARTS; i++) {
		pid = vfork(); /* a fork's own page faults would count */
		if (pid == 0) {
			execvp(words[0], words);
			_exit(127);
		}
		if (pid < 0 || wait4(pid, &status, 0, &used) < 0 || status != 0)
			return;
		counts[i] = (int)used.ru_minflt;
	}
	qsort(counts, STARTS, sizeof *counts, by_number);
	print_value("faults", way->name, counts[STARTS / 2], most);
}

static const char *command(const char *tool, const char *options)
{
	static char text[16][256];
	static int used;
	char *line = text[used++ % 16];

	snprintf(line, sizeof *text, "%s%s " LOCK " " TRUE, tool, options);
	return line;
}

void bench_counts(void)
{
	const struct way ways[] = {
	    {"flock", command("flock", ""), -1},
	    {"semlock", command(tools.semlock, ""), -1},
	    {"static semlock", tools.small[0] ? command(tools.small, "") : "false", 14},
	    {"semlock -F", command(tools.semlock, " -F"), -1},
	    {"static semlock -F", tools.small[0] ? command(tools.small, " -F") : "false", -1},
	    {"flock -F", command("flock", " -F"), -1},
	    {"setlock", command("setlock", ""), -1},
	    {"chpst -l", command("chpst -l", ""), -1},
	    {"s6-setlock", command("s6-setlock", ""), -1},
	    {"lckdo", command("lckdo", ""), -1},
	    {"with-lock-ex -w", command("with-lock-ex -w", ""), -1},
	    {"the least, static", tools.least[1][0] ? command(tools.least[1], "") : "false", -1},
	};
	const size_t count = sizeof ways / sizeof *ways;

	print_title("system calls, nobody else there");
	if (output_of("command -v strace")[0] == '\0')
		printf("  strace is not installed\n");
	for (size_t i = 0; i < count; i++)
		system_calls(&ways[i]);
	print_title("instructions, likewise");
	if (output_of("command -v valgrind")[0] == '\0')
		printf("  valgrind is not installed\n");
	for (size_t i = 0; i < count; i++)
		instructions(&ways[i]);
	print_title("page faults, the command's included");
	page_faults(&(struct way){TRUE " alone", TRUE, -1}, -1);
	for (size_t i = 0; i < count; i++)
		page_faults(&ways[i], strcmp(ways[i].name, "static semlock") == 0 ? 60 : -1);
	unlink("bench.trace");
}
