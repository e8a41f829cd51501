/* bench - what semlock costs, as ratios to flock(1) from interleaved runs.
 *
 *   bench SEMLOCK [ROUNDS [FLOCK]]
 *
 * Each row is measured in rounds, flock(1) and semlock in turn, and each round gives a
 * ratio: how fast the machine is at the moment does not matter.  Printed are the lowest,
 * the median and the highest ratio. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static const char *tool, *lock_name = "bench.lock";

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double cpu(void)
{
	struct rusage used;

	getrusage(RUSAGE_CHILDREN, &used);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static pid_t start(const char *const words[])
{
	union {
		const char *words[16];
		char *argv[16];
	} command = {{NULL}};
	pid_t pid;

	for (int i = 0; i < 15 && words[i] != NULL; i++)
		command.words[i] = words[i];
	errno = posix_spawnp(&pid, command.words[0], NULL, NULL, command.argv, environ);
	if (errno != 0) {
		perror(command.words[0]);
		exit(69);
	}
	return pid;
}

/* COUNT runs of the words, one after the other: seconds. */
static double runs(int count, const char *const words[], int status_wanted)
{
	double began = now();
	int status;

	for (int i = 0; i < count; i++) {
		waitpid(start(words), &status, 0);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != status_wanted) {
			fprintf(stderr, "bench: %s: unexpected status %d\n", words[0], status);
			exit(70);
		}
	}
	return now() - began;
}

static double bare(void)
{
	return runs(50, (const char *const[]){"/bin/true", NULL}, 0);
}

static double wrap(void)
{
	return runs(50, (const char *const[]){tool, lock_name, "/bin/true", NULL}, 0);
}

static double become(void)
{
	return runs(50, (const char *const[]){tool, "-F", lock_name, "/bin/true", NULL}, 0);
}

static int hold(void)
{
	int fd = open(lock_name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);

	if (fd < 0 || flock(fd, LOCK_EX) != 0)
		exit(70);
	return fd;
}

static double refuse(void)
{
	int fd = hold();
	double took = runs(50, (const char *const[]){tool, "-n", lock_name, "/bin/true", NULL}, 1);

	close(fd);
	return took;
}

static double overshoot(void)
{
	int fd = hold();
	double took = runs(10, (const char *const[]){tool, "-w", "0.05", lock_name, "/bin/true", NULL}, 1);

	close(fd);
	return took - 10 * 0.05;
}

static bool asleep(pid_t pid)
{
	char path[64], text[32] = "";
	long call;
	int fd;

	snprintf(path, sizeof path, "/proc/%ld/syscall", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
		text[0] = '\0';
	if (fd >= 0)
		close(fd);
	call = strtol(text, NULL, 10);
	return text[0] >= '1' && text[0] <= '9' && (call == SYS_fcntl || call == SYS_flock);
}

/* COUNT waiters sleep behind a holder; then it lets go: seconds until all have been. */
static double handed_on(int count)
{
	static const struct timespec a_moment = {0, 50000};
	pid_t pids[1000];
	int fd = hold();
	double began;

	for (int i = 0; i < count; i++) {
		pids[i] = start((const char *const[]){tool, lock_name, "/bin/true", NULL});
		while (!asleep(pids[i]))
			nanosleep(&a_moment, NULL);
	}
	began = now();
	close(fd);
	for (int i = 0; i < count; i++)
		waitpid(pids[i], NULL, 0);
	return now() - began;
}

static double hand_on_100(void)
{
	return handed_on(100);
}

static double hand_on_1000(void)
{
	return handed_on(1000);
}

static double cpu_of_drain;

static double drain(void)
{
	double began = now(), before = cpu();

	for (int i = 0; i < 1000; i++)
		start((const char *const[]){tool, lock_name, "/bin/true", NULL});
	while (wait(NULL) > 0)
		;
	cpu_of_drain = cpu() - before;
	return now() - began;
}

static double drain_cpu(void)
{
	drain();
	return cpu_of_drain;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void compare(const char *what, double (*measure)(void), int rounds, const char *const tools[2])
{
	double ratios[1000] = {0}, took[2];

	for (int i = -1; i < rounds; i++) {
		for (int j = 0; j < 2; j++) {
			int which = (i + j) & 1; /* each is first in every other round */

			tool = tools[which];
			took[which] = measure();
		}
		if (i >= 0) /* the first round only warms up */
			ratios[i] = took[1] / took[0];
	}
	qsort(ratios, (size_t)rounds, sizeof *ratios, by_size);
	printf("%-52s %6.2f %6.2f %6.2f\n", what, ratios[0], ratios[rounds / 2], ratios[rounds - 1]);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 20;
	const char *const tools[2] = {argc > 3 ? argv[3] : "flock", argc > 1 ? argv[1] : "semlock"};
	int few;

	if (rounds < 1 || rounds > 1000)
		return 64;
	few = rounds / 4 + 1;
	printf("%-52s %6s %6s %6s\n", "semlock / flock(1)", "min", "median", "max");
	compare("the command alone (1.00: how noisy it is here)", bare, rounds, tools);
	compare("wrap a command", wrap, rounds, tools);
	compare("become it, -F", become, rounds, tools);
	compare("refuse, -n", refuse, rounds, tools);
	compare("overshoot of -w 0.05", overshoot, few, tools);
	compare("100 waiters asleep, served", hand_on_100, few, tools);
	compare("1,000 waiters asleep, served", hand_on_1000, few, tools);
	compare("1,000 processes drained", drain, few, tools);
	compare("1,000 processes drained, processor time", drain_cpu, few, tools);
	unlink(lock_name);
	return 0;
}
