/* SPDX-License-Identifier: MIT */
/* torture - contenders for one lock that is taken and killed all the time.
 *
 *	torture METHOD SEMLOCK ACQUISITIONS KILLS CONTENDERS [SEED]
 *	torture breakers METHOD SEMLOCK ROUNDS BREAKERS
 *
 * METHOD is one of semlock's, or a naive locker of naive.c, which has to fail.  Works in the
 * current directory.  Prints the figures; ends with 0 if nothing was wrong, 1 if something was,
 * 2 if the torture could not run.
 *
 * The contenders ask for the lock in all ways of forms.c that METHOD has: with a command, -c,
 * -F, -o, a descriptor, a deadline, shared, in a slot, ...; each time in another one.
 * TORTURE_FORMS=command,peer,...: in these alone; without it, in all but those of other
 * programs.  (Other programs do not check whether a lock file has been deleted: so not both at
 * once.) TORTURE_SECONDS: the longest time.  TORTURE_STUCK: so many seconds without an entry are a
 * failure.
 *
 * As root, every second contender is another user.  A hostile process locks bytes of the queue,
 * and waiters are stopped for a while, most of all while a replacer is inside. */
#include <config.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "naive.h"
#include "torture.h"

/* A winner stays until all other breakers have ended or have won, too. */
static int win(void)
{
	atomic_fetch_add(&board->winners, 1);
	for (int tries = 0; tries < 20000; tries++) {
		if (atomic_load(&board->ended) + atomic_load(&board->winners) >=
		    atomic_load(&board->breakers))
			return 0;
		pause_us(1000);
	}
	return 1;
}

static int die(void)
{
	kill(getppid(), SIGKILL);
	return raise(SIGKILL);
}

/* A command under the lock, or the process of a contender.  -1: neither. */
static int play_part(int argc, char **argv)
{
	const char *part = argc < 2 ? "" : argv[1];

	if (strcmp(part, "die") == 0)
		return die();
	if (strcmp(part, "win") == 0)
		return open_board(0), win();
	if (strcmp(part, "inside") == 0 && argc >= 3)
		return open_board(0), go_inside(atoi(argv[2]), argc > 3 ? argv[3] : "x");
	if (strcmp(part, "fd") == 0 && argc > 4)
		return open_board(0), lock_by_descriptor(atoi(argv[2]), argv[3], argv + 4);
	if (strcmp(part, "held") == 0 && argc == 3)
		return say_if_held(argv[2]);
	if (strcmp(part, "open") == 0 && argc > 2)
		return open_and_exec(argv + 2);
	if (strcmp(part, "hand") == 0 && argc > 3)
		return open_board(0), by_hand(argv[2], atoi(argv[3]));
	return -1;
}

int main(int argc, char **argv)
{
	static char path[4096];
	int status;

	if (realpath("/proc/self/exe", path) == NULL)
		fatal("/proc/self/exe");
	self = path;
	status = play_part(argc, argv);
	if (status >= 0)
		return status;
	if (argc < 6 || atoi(argv[5]) < 1 || atoi(argv[5]) > MOST) {
		fprintf(stderr,
		    "usage: torture METHOD SEMLOCK ACQUISITIONS KILLS CONTENDERS [SEED]\n"
		    "       torture breakers METHOD SEMLOCK ROUNDS BREAKERS\n");
		return 2;
	}
	if (strcmp(argv[1], "breakers") == 0 && naive_is(argv[2])) {
		fprintf(stderr, "torture: %s waits for the lock: it is no breaker\n", argv[2]);
		return 2;
	}
	users_begin(argv[strcmp(argv[1], "breakers") == 0 ? 3 : 2]);
	open_board(O_CREAT | O_TRUNC);
	if (strcmp(argv[1], "breakers") == 0)
		return breakers(argv[2], argv[3], atoi(argv[4]), atoi(argv[5]));
	seed(argc > 6 ? strtoull(argv[6], NULL, 10) : 0);
	return contend(argv[1], argv[2], atol(argv[3]), atol(argv[4]), atoi(argv[5]));
}
