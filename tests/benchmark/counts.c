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
	    "strace -o bench.trace %s >/dev/null 2>&1; awk '/^[a-z_0-9]+[(]/ && execs < 2 { calls++ } "
	    "/^execve[(]/ { execs++ } END { print calls }' bench.trace", way->command);
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
		print_value("instructions", way->name, strtod(at + strlen("Collected : "), NULL), -1);
}

/* With the command's page faults, which are a part of the time. */
static void page_faults(const struct way *way)
{
	const char *words[] = {"sh", "-c", NULL, NULL};
	char exec[300];
	struct rusage used;
	int status;
	pid_t pid;

	snprintf(exec, sizeof exec, "exec %s", way->command);
	words[2] = exec;
	pid = start(words);
	if (pid < 0 || wait4(pid, &status, 0, &used) < 0 || status != 0)
		return;
	print_value("faults", way->name, (double)used.ru_minflt, -1);
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
	print_title("page faults, a shell's start and the command's included");
	for (size_t i = 0; i < count; i++)
		page_faults(&ways[i]);
	unlink("bench.trace");
}
