/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "torture.h"

struct board *board;
const char *self;
static unsigned long long random_state = 1;

void open_board(int flags)
{
	int fd = open("board", flags | O_RDWR | O_CLOEXEC, 0666);

	if (fd < 0 || ftruncate(fd, sizeof(struct board)) != 0)
		fatal("board");
	board = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (board == MAP_FAILED)
		fatal("mmap");
	close(fd);
}

int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void pause_us(long us)
{
	struct timespec pause = {us / 1000000, us % 1000000 * 1000};

	nanosleep(&pause, NULL);
}

void seed(unsigned long long number)
{
	random_state = number * 2 + 1;
}

unsigned pick(unsigned n)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)(random_state >> 33) % n;
}

void fatal(const char *what)
{
	perror(what);
	exit(2);
}

unsigned note(int what, pid_t pid, int slot)
{
	unsigned number = atomic_fetch_add(&board->events, 1);
	struct event *event = &board->event[number % EVENTS];

	atomic_store(&event->what, what);
	atomic_store(&event->pid, (int)pid);
	atomic_store(&event->slot, slot);
	atomic_store(&event->ns, now_ns());
	return number;
}

static const char *word_for(int what)
{
	switch (what) {
	case 'x':
		return "is in, alone";
	case 's':
		return "is in, shared";
	case 'j':
		return "is in, in a slot";
	case 'd':
		return "is in, alone, and will delete the file";
	case 'l':
		return "leaves";
	case 'D':
		return "has deleted the lock file";
	case 'K':
		return "is sent SIGKILL";
	case 'S':
		return "is sent SIGSTOP";
	case 'T':
		return "is sent SIGTERM";
	case 'P':
		return "is left stopped";
	case 'H':
		return "blocks the queue";
	case 'O':
		return "FINDS ANOTHER INSIDE";
	}
	return "?";
}

void show_events(unsigned end)
{
	unsigned from = end > 40 ? end - 40 : 0;
	long long now = atomic_load(&board->event[(end - 1) % EVENTS].ns);

	for (unsigned i = from; i < end; i++) {
		struct event *event = &board->event[i % EVENTS];

		printf("%10.1f us  process %d of contender %d %s\n",
		    (double)(atomic_load(&event->ns) - now) / 1000, atomic_load(&event->pid),
		    atomic_load(&event->slot), word_for(atomic_load(&event->what)));
	}
}
