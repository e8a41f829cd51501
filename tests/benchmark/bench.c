/* SPDX-License-Identifier: MIT */
/* bench - see bench.h.
 *
 *   bench SEMLOCK STATIC_SEMLOCK CROWD LEAST STATIC_LEAST ROUNDS PART...
 *
 * PART is start, crowds (drain is a part of that), scaling, files, looking, servers, counts, growth.
 * The table goes to standard output, its figures also to the file bench.tsv, for
 * tests/benchmark/plot. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

struct tools tools;

/* For the chart as well: figures belong to a machine and a day. */
static void say_where(void)
{
	struct utsname system;
	time_t today = time(NULL);
	char date[32], line[256];
	double load[1] = {0};
	FILE *file = fopen("bench.tsv", "w");

	uname(&system);
	getloadavg(load, 1);
	strftime(date, sizeof date, "%Y-%m-%d", localtime(&today));
	snprintf(line, sizeof line, "%s, Linux %s, %ld processors, load %.1f, %s", date,
	    system.release, sysconf(_SC_NPROCESSORS_ONLN), load[0], output_of("flock --version"));
	line[strcspn(line, "\n")] = '\0';
	printf(
	    "%s, LC_ALL=C\nratios to the first line of each contest: median [lowest - highest]\n",
	    line);
	if (file == NULL)
		return;
	fprintf(file, "made\t%s\n", line);
	fclose(file);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*hold)(void);
	} parts[] = {
	    {"start", bench_start},
	    {"crowds", bench_crowds},
	    {"files", bench_files},
	    {"counts", bench_counts},
	    {"growth", bench_growth},
	    {"scaling", bench_scaling},
	    {"drain", bench_drain},
	    {"looking", bench_looking},
	    {"servers", bench_servers},
	};

	if (argc == 3 && strcmp(argv[1], "nap") == 0)
		return usleep((useconds_t)atoi(argv[2])) == 0 ? 0 : 1;
	if (argc < 8 || atoi(argv[6]) < 1 || atoi(argv[6]) > MOST_ROUNDS) {
		fprintf(stderr, "bench: see the comment at the top of its source\n");
		return 64;
	}
	tools =
	    (struct tools){argv[1], argv[2], argv[3], {argv[4], argv[5]}, argv[0], atoi(argv[6])};
	setenv("LC_ALL", "C", 1); /* flock(1) needs more time in other locales */
	say_where();
	for (int i = 7; i < argc; i++)
		for (size_t j = 0; j < sizeof parts / sizeof *parts; j++)
			if (strcmp(argv[i], parts[j].name) == 0)
				parts[j].hold();
	unlink(LOCK);
	printf("\n%d of %d targets met\n", goals_met, goals_set);
	return 0;
}
