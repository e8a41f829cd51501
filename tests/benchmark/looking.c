/* SPDX-License-Identifier: MIT */
/* What it costs to see who holds a lock on a machine with many locks and processes: the one that
 * looks, and the others, whose lock calls wait while /proc/locks is read. */
#include <config.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

enum { PROCESSES = 600, LOCKS = 5000, MOST_MEASURED = 100, MOST_WAITS = 5 };
#define DATABASE "bench.database"
#define PASSING "bench.passing"

static int held; /* the descriptor of LOCK, which no other process is to share */

static void lock_byte(int fd, short type, off_t at)
{
	struct flock byte = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};

	if (fcntl(fd, F_OFD_SETLK, &byte) != 0)
		_exit(70);
}

static void sleep_us(long us)
{
	nanosleep(&(struct timespec){0, us * 1000}, NULL);
}

/* As a database does: many record locks, and one that comes and goes each millisecond.  Returns the
 * process that has them, and writes to READY. */
static pid_t database(int ready)
{
	pid_t pid = fork();
	int fd;

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(held);
	fd = open(DATABASE, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	for (off_t i = LOCKS; i > 0; i--)
		lock_byte(fd, F_WRLCK, 2 * i);
	if (write(ready, "", 1) != 1)
		_exit(70);
	for (;;) {
		lock_byte(fd, F_WRLCK, 0);
		sleep_us(500);
		lock_byte(fd, F_UNLCK, 0);
		sleep_us(500);
	}
}

static pid_t begin_database(void)
{
	int ends[2];
	char byte;
	pid_t pid;

	if (pipe(ends) != 0)
		exit(70);
	pid = database(ends[1]);
	if (pid < 0 || read(ends[0], &byte, 1) != 1)
		exit(70);
	close(ends[0]);
	close(ends[1]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void crowd(pid_t *pids)
{
	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
	}
}

static double shortest(const struct entrant *entrant)
{
	double least = one_run(entrant, 0), took;

	for (int i = 0; i < 4; i++) {
		took = one_run(entrant, 0);
		least = took < least ? took : least;
	}
	return least;
}

/* How many times as long does ENTRANT take beside the database? */
static void beside_locks(const struct entrant *entrant, double most)
{
	const int count = tools.rounds < MOST_MEASURED ? tools.rounds : MOST_MEASURED;
	double ratios[MOST_MEASURED] = {0}, alone;
	pid_t pid;

	for (int i = 0; i < count; i++) {
		alone = shortest(entrant);
		pid = begin_database();
		ratios[i] = shortest(entrant) / alone;
		end(pid);
	}
	print_value("looking", entrant->name, median(ratios, count), most);
}

/* The lock calls in a fifth of a second. */
static double lock_calls(int fd)
{
	const double began = now();
	double count = 0;

	for (; now() - began < .2; count++) {
		flock(fd, LOCK_EX);
		flock(fd, LOCK_UN);
	}
	return count;
}

/* The share of its lock calls that a program keeps while ENTRANT looks, twenty times a second. */
static void beside_looks(const struct entrant *entrant)
{
	const int count = tools.rounds < MOST_MEASURED ? tools.rounds : MOST_MEASURED;
	int fd = open("bench.own", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	double shares[MOST_MEASURED] = {0}, alone;
	pid_t pid;

	for (int i = 0; i < count; i++) {
		alone = lock_calls(fd);
		pid = fork();
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close(held);
			for (;;) {
				run(entrant);
				sleep_us(50000);
			}
		}
		shares[i] = lock_calls(fd) / alone;
		end(pid);
	}
	close(fd);
	unlink("bench.own");
	print_value("looking-others", entrant->name, median(shares, count), -1);
}

/* ---- what is shown of a wait ---- */

/* A wait, and the ways in which it is shown. */
struct wait {
	const char *name;
	const char *words[6]; /* of semlock */
	int status;
	bool passing; /* its holder ends after 1.5 seconds, and heeds no TERM; else it stays */
};
struct way {
	const char *name, *option;
	bool terminal;
};

/* Returns a process that holds PASSING for 1.5 seconds. */
static pid_t passing_holder(void)
{
	int ends[2], fd;
	char byte;
	pid_t pid;

	if (pipe(ends) != 0)
		exit(70);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGTERM, SIG_IGN);
		close(held);
		fd = open(PASSING, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
		if (flock(fd, LOCK_EX) != 0 || write(ends[1], "", 1) != 1)
			_exit(70);
		nanosleep(&(struct timespec){1, 500000000}, NULL);
		_exit(0);
	}
	if (pid < 0 || read(ends[0], &byte, 1) != 1)
		exit(70);
	close(ends[0]);
	close(ends[1]);
	return pid;
}

/* start(), with a terminal of its own for standard error.  Returns false if none is to be had. */
static bool start_on_terminal(const char *const *words, pid_t *pid, int *terminal)
{
	union {
		const char *words[MOST_WORDS];
		char *argv[MOST_WORDS];
	} command = {{NULL}};
	int other;

	*terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (*terminal < 0 || grantpt(*terminal) != 0 || unlockpt(*terminal) != 0)
		return false;
	for (int i = 0; i < MOST_WORDS - 1 && words[i] != NULL; i++)
		command.words[i] = words[i];
	*pid = fork();
	if (*pid == 0) {
		setsid();
		other = open(ptsname(*terminal), O_RDWR); /* the controlling one */
		if (other < 0 || dup2(other, STDERR_FILENO) < 0)
			_exit(70);
		setenv("TERM", "xterm", 1);
		execvp(command.argv[0], command.argv);
		_exit(70);
	}
	return *pid > 0;
}

/* A wait that is shown, and goes on. */
struct waiter {
	pid_t pid;
	int terminal; /* -1: none */
};

static struct waiter begin_wait(const struct wait *wait, const struct way *way)
{
	struct waiter waiter = {0, -1};
	const char *words[MOST_WORDS] = {tools.semlock};
	int used = 1;

	if (way->option != NULL)
		words[used++] = way->option;
	for (int i = 0; wait->words[i] != NULL; i++)
		words[used++] = wait->words[i];
	if (!way->terminal)
		waiter.pid = start(words);
	else if (!start_on_terminal(words, &waiter.pid, &waiter.terminal))
		exit(70);
	return waiter;
}

static void await(const struct waiter *waiter, const struct wait *wait, const struct way *way)
{
	int status;

	if (waiter->pid < 0 || waitpid(waiter->pid, &status, 0) < 0 || !WIFEXITED(status) ||
	    WEXITSTATUS(status) != wait->status) {
		fprintf(stderr, "bench: %s, %s: an unexpected status\n", wait->name, way->name);
		exit(70);
	}
	if (waiter->terminal >= 0)
		close(waiter->terminal);
}

/* The seconds of a wait. */
static double one_wait(const struct wait *wait, const struct way *way)
{
	pid_t holder = wait->passing ? passing_holder() : 0;
	const double began = now();
	const struct waiter waiter = begin_wait(wait, way);
	double took;

	await(&waiter, wait, way);
	took = now() - began;
	if (holder > 0)
		end(holder);
	return took;
}

/* The seconds until the last of 60 waits is over. */
static double sixty_waits(const struct wait *wait, const struct way *way)
{
	enum { WAITS = 60 };
	struct waiter waiters[WAITS];
	const double began = now();

	for (int i = 0; i < WAITS; i++)
		waiters[i] = begin_wait(wait, way);
	for (int i = 0; i < WAITS; i++)
		await(&waiters[i], wait, way);
	return now() - began;
}

/* How many times as long do waits take in which it is shown who holds the lock? */
static void shown_waits(void)
{
	static const struct wait waits[] = {
	    {"-w 1", {"-w", "1", LOCK, TRUE}, 1, false},
	    {"hand-over", {PASSING, TRUE}, 0, true},
	    {"--replace", {"--replace", PASSING, TRUE}, 0, true},
	};
	static const struct way ways[] = {
	    {"quiet", NULL, false},
	    {"-v", "-v", false},
	    {"--log", "--log=bench.log", false},
	    {"terminal", NULL, true},
	};
	enum { WAYS = sizeof ways / sizeof *ways };
	const int count = tools.rounds < MOST_WAITS ? tools.rounds : MOST_WAITS;
	double ratios[WAYS][MOST_WAITS] = {{0}}, sixty[MOST_WAITS] = {0}, alone;
	char name[64];

	for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
		for (int j = 0; j < count; j++) {
			alone = one_wait(&waits[i], &ways[0]);
			for (size_t k = 1; k < WAYS; k++)
				ratios[k][j] = one_wait(&waits[i], &ways[k]) / alone;
		}
		for (size_t k = 1; k < WAYS; k++) {
			snprintf(name, sizeof name, "semlock %s, %s", waits[i].name, ways[k].name);
			print_value("looking-waits", name, median(ratios[k], count), 1.1);
		}
	}
	print_title("sixty of them with -w 1, which begin together: seconds until all are over");
	for (size_t k = 0; k < WAYS; k++) {
		for (int j = 0; j < count; j++)
			sixty[j] = sixty_waits(&waits[0], &ways[k]);
		snprintf(name, sizeof name, "60 waiters, %s", ways[k].name);
		print_value("looking-sixty", name, median(sixty, count), 1.2);
	}
	unlink(PASSING);
	unlink("bench.log");
}

void bench_looking(void)
{
	static const struct entrant idle = {"(nobody looks)", {TRUE}, 0};
	const struct entrant list = {"lslocks", {"lslocks"}, 0},
			     who = {"semlock --who LOCK", {tools.semlock, "--who", LOCK}, 1},
			     refused = {"semlock -v -n LOCK",
				 {tools.semlock, "-v", "-n", LOCK, TRUE}, 1},
			     quiet = {"semlock -n LOCK", {tools.semlock, "-n", LOCK, TRUE}, 1};
	static pid_t pids[PROCESSES];
	pid_t pid;

	crowd(pids);
	held = hold();
	print_title("beside 600 processes and 5,000 record locks, one of which changes each ms: "
		    "times as long as without the locks");
	beside_locks(&list, -1);
	beside_locks(&who, 1.1);
	beside_locks(&refused, 1.1);
	beside_locks(&quiet, -1);
	print_title("lock calls of another program while one looks, all of these locks there: the "
		    "share that is left");
	pid = begin_database();
	beside_looks(&idle);
	beside_looks(&list);
	beside_looks(&who);
	print_title(
	    "waits that are shown, all of these locks there, for a holder that stays (-w 1), or "
	    "that ends after 1.5 s: times as long as one that is not");
	shown_waits();
	end(pid);
	for (int i = 0; i < PROCESSES; i++)
		end(pids[i]);
	unlink(DATABASE);
	close(held);
}
