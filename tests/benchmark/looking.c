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

enum { PROCESSES = 600, LOCKS = 5000, MOST_MEASURED = 100 };
#define DATABASE "bench.database"

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

static int ascending(const void *one, const void *other)
{
	const double a = *(const double *)one, b = *(const double *)other;

	return (a > b) - (a < b);
}

static double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof *values, ascending);
	return values[count / 2];
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
	end(pid);
	for (int i = 0; i < PROCESSES; i++)
		end(pids[i]);
	unlink(DATABASE);
	close(held);
}
