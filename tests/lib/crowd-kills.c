/* SPDX-License-Identifier: MIT */
/* Visitors under random SIGKILL, and philosophers: no two may be in one place. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crowd.h"

/* The kernel closes a dying process's descriptors in no fixed order. A process that is exiting has
 * left, even if its claim is still locked. */
static bool is_leaving(pid_t pid)
{
	char path[64], text[512], *end;
	unsigned long flags = 0;
	char state = 'X';
	ssize_t got;
	int fd;

	snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	text[got > 0 ? got : 0] = '\0';
	end = strrchr(text, ')');
	if (end == NULL || sscanf(end + 1, " %c %*d %*d %*d %*d %*d %lu", &state, &flags) < 1)
		return true;
	return state == 'Z' || state == 'X' || (flags & 0x4) != 0; /* PF_EXITING */
}

/* Claims byte PLACE of the witness file; false: a process that is not exiting has it. */
static bool claim(int fd, int place)
{
	struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = place, .l_len = 1};
	struct flock other;

	while (fcntl(fd, F_SETLK, &byte) != 0) {
		other = byte;
		if (fcntl(fd, F_GETLK, &other) == 0 && other.l_type != F_UNLCK &&
		    !is_leaving(other.l_pid))
			return false;
	}
	return true;
}

int crowd_claim(char **argv)
{
	const char *slots = getenv("SEMLOCK_SLOT");
	int witness = open(argv[0], O_RDWR | O_CREAT, 0600), place;
	struct board *board = board_open(argv[1]);

	/* "0,3" */
	for (; slots == NULL || *slots != '\0';
	     slots += strcspn(slots, ",") + (strchr(slots, ',') != NULL)) {
		place = slots == NULL ? 0 : atoi(slots);
		if (place >= atoi(argv[2]) || !claim(witness, place)) {
			atomic_fetch_add(&board->overlaps, 1);
			return 1;
		}
		board->visit[place].entered++;
		if (slots == NULL)
			break;
	}
	atomic_fetch_add(&board->visits, 1);
	nap((now() % 4 + 1) * 300000);
	return 0;
}

static int places_used(const struct board *board, int most)
{
	int used = 0;

	for (int i = 0; i < most; i++)
		used += board->visit[i].entered > 0;
	return used;
}

/* Returns at UNTIL; on a busy machine when each place has been used, but at most a minute later. */
static void kill_loop(const char *const *cmd, const char *witness, const char *file,
    const char *most, unsigned seed, int64_t until)
{
	const struct board *board = board_open(file);
	pid_t pid;
	int status;

	while (now() < until || (places_used(board, atoi(most)) < atoi(most) &&
				    now() < until + INT64_C(60000000000))) {
		pid = start(cmd, (const char *const[]){self, "claim", witness, file, most, NULL});
		if (rand_r(&seed) % 4 == 0) {
			nap(rand_r(&seed) % 4000 * 1000);
			kill(pid, SIGKILL);
		}
		waitpid(pid, &status, 0);
	}
}

int crowd_kills(char **argv)
{
	int n = atoi(argv[0]), most = atoi(argv[3]), used, status;
	int64_t until = now() + strtoll(argv[1], NULL, 10) * INT64_C(1000000000);
	char witness[4096], file[4096];
	struct board *board;

	snprintf(witness, sizeof witness, "%s/witness", argv[4]);
	snprintf(file, sizeof file, "%s/board", argv[4]);
	board = board_open(file);
	for (int i = 0; i < n; i++)
		if (fork() == 0) {
			kill_loop((const char *const *)argv + 5, witness, file, argv[3],
			    (unsigned)(atoi(argv[2]) + i), until);
			_exit(0);
		}
	while (wait(&status) > 0)
		;
	used = places_used(board, most);
	printf("visits %d overlaps %d places-used %d\n", atomic_load(&board->visits),
	    atomic_load(&board->overlaps), used);
	return atomic_load(&board->overlaps) == 0 && used == most ? 0 : 1;
}

/* A meal needs both forks; no other philosopher may have either. */
int crowd_meal(char **argv)
{
	int fd = open(argv[0], O_RDWR | O_CREAT, 0600);
	struct board *board = board_open(argv[1]);

	if (!claim(fd, atoi(argv[2])) || !claim(fd, atoi(argv[3])))
		atomic_fetch_add(&board->overlaps, 1);
	atomic_fetch_add(&board->visits, 1);
	return 0;
}

static void philosopher(char **argv, int seat, const char *witness, const char *file)
{
	int n = atoi(argv[0]), left = seat, right = (seat + 1) % n, swap;
	unsigned seed = (unsigned)(atoi(argv[2]) + seat);
	char a[4096], b[4096], one[16], other[16];

	for (int meal = 0; meal < atoi(argv[1]); meal++) {
		if (rand_r(&seed) % 2 == 0) {
			swap = left;
			left = right;
			right = swap;
		}
		snprintf(a, sizeof a, "%s/fork%d", argv[3], left);
		snprintf(b, sizeof b, "%s/fork%d", argv[3], right);
		snprintf(one, sizeof one, "%d", left);
		snprintf(other, sizeof other, "%d", right);
		waitpid(start((const char *const[]){argv[4], "-f", a, b, NULL},
			    (const char *const[]){self, "meal", witness, file, one, other, NULL}),
		    NULL, 0);
	}
}

int crowd_dine(char **argv)
{
	int n = atoi(argv[0]), meals;
	char witness[4096], file[4096];
	struct board *board;

	snprintf(witness, sizeof witness, "%s/witness", argv[3]);
	snprintf(file, sizeof file, "%s/board", argv[3]);
	board = board_open(file);
	for (int i = 0; i < n; i++)
		if (fork() == 0) {
			philosopher(argv, i, witness, file);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	meals = atomic_load(&board->visits);
	printf("meals %d overlaps %d\n", meals, atomic_load(&board->overlaps));
	return meals == n * atoi(argv[1]) && atomic_load(&board->overlaps) == 0 ? 0 : 1;
}
