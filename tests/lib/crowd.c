/* SPDX-License-Identifier: MIT */
/* crowd - many real processes at one lock, and the order in which they are served.
 *
 *   crowd line N KILL SEED LOG CMD...   N waiters, each started when the one before it sleeps;
 *                                       KILL of them are killed; then serves them
 *   crowd judge LOG                     the same count of a LOG that waiters have written by
 *                                       crowd number LOG N
 *   crowd loops N ROUNDS HOLD LATE CMD...
 *                                       N loops of ROUNDS commands that hold HOLD us; counts the
 *                                       entries more than LATE us after a later arrival's
 *   crowd writer N TIMES HOLD TOOL LOCK N loops of readers that hold HOLD us, and TIMES a writer:
 *                                       counts the later readers that overtake it
 *   crowd kills N SECONDS SEED PLACES DIR CMD...
 *                                       N loops under random SIGKILL; every visitor claims the
 *                                       place that its SEMLOCK_SLOT (0) names
 *   crowd dine N MEALS SEED DIR TOOL    N philosophers, N forks, the locks of a meal in any order
 *
 * CMD is the lock tool with its options and its LOCK; the tool runs crowd again. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "crowd.h"
#include "syscalls.h"

extern char **environ;

const char *self;

int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void nap(int64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	while (nanosleep(&t, &t) != 0 && errno == EINTR)
		;
}

void fail(const char *what)
{
	fprintf(stderr, "crowd: %s: %s\n", what, strerror(errno));
	exit(70);
}

struct board *board_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct board *board;

	if (fd < 0 || ftruncate(fd, (off_t)sizeof *board) != 0)
		fail(path);
	board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (board == MAP_FAILED)
		fail("mmap");
	close(fd);
	return board;
}

/* Run CMD with the words of MORE behind it. */
pid_t start(const char *const *cmd, const char *const more[])
{
	union {
		const char *words[64];
		/* posix_spawn(3) changes no argument, but its prototype lacks const */
		char *argv[64];
	} command;
	size_t n = 0;
	pid_t pid;

	while (*cmd != NULL && n < 48)
		command.words[n++] = *cmd++;
	while (*more != NULL)
		command.words[n++] = *more++;
	command.words[n] = NULL;
	errno = posix_spawnp(&pid, command.words[0], NULL, NULL, command.argv, environ);
	if (errno != 0)
		fail(command.words[0]);
	return pid;
}

static bool has_ended(pid_t pid)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == pid;
}

/* A line of /proc/PID/syscall: the call, and its arguments; "running" if the process does not
 * sleep.  A LOCK_NB call sleeps as well, while another process reads /proc/locks: look at the
 * flag. */
static bool waits_for_lock(const char *line)
{
	unsigned long how;
	long call, fd;

	if (sscanf(line, "%ld %li %lx", &call, &fd, &how) != 3)
		return false;
	if (is_fcntl(call))
		return how == F_SETLKW || how == F_OFD_SETLKW;
	return is_futex(call) || (call == SYS_flock && (how & LOCK_NB) == 0);
}

/* What is in /proc/PID/WHAT; empty if it cannot be read. */
static void read_of(pid_t pid, const char *what, char *text, size_t size)
{
	char path[64];
	int fd;
	ssize_t got = -1;

	snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, what);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = read(fd, text, size - 1);
		close(fd);
	}
	text[got > 0 ? got : 0] = '\0';
}

/* With -m posix the child of the started semlock waits: src/run/subreaper.h. */
static bool is_asleep(pid_t pid)
{
	char text[256], children[64];

	read_of(pid, "syscall", text, sizeof text);
	if (waits_for_lock(text))
		return true;
	snprintf(children, sizeof children, "task/%ld/children", (long)pid);
	read_of(pid, children, text, sizeof text);
	if (atol(text) > 0)
		read_of((pid_t)atol(text), "syscall", text, sizeof text);
	return waits_for_lock(text);
}

bool until_asleep(pid_t pid)
{
	int64_t give_up = now() + INT64_C(60000000000);

	while (now() < give_up) {
		if (is_asleep(pid))
			return true;
		if (has_ended(pid))
			return false;
		nap(100000);
	}
	errno = ETIMEDOUT;
	fail("a waiter did not go to sleep");
	return false;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int words;
		int (*run)(char **argv);
	} verbs[] = {
	    {"line", 6, crowd_line},
	    {"judge", 1, crowd_judge},
	    {"stand", 2, crowd_stand},
	    {"number", 2, crowd_number},
	    {"loops", 6, crowd_loops},
	    {"visit", 3, crowd_visit},
	    {"writer", 5, crowd_writer},
	    {"stay", 2, crowd_stay},
	    {"look", 1, crowd_look},
	    {"kills", 7, crowd_kills},
	    {"claim", 3, crowd_claim},
	    {"dine", 5, crowd_dine},
	    {"meal", 4, crowd_meal},
	};

	self = argv[0];
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		if (argc >= 2 && strcmp(argv[1], verbs[i].name) == 0 && argc - 2 >= verbs[i].words)
			return verbs[i].run(argv + 2);
	fprintf(stderr, "crowd: see the comment at the top of its source\n");
	return 64;
}
