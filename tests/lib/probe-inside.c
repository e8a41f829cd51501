/* SPDX-License-Identifier: MIT */
/* probe-inside.c - the test of mutual exclusion: counts overlaps. */
#include <config.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#include "probe.h"

struct room {
	atomic_long writers, readers; /* inside at this moment */
	/* how often two processes were inside that exclude each other */
	atomic_long overlaps;
	volatile long rounds; /* a plain number: two writers at once lose one */
	atomic_long reads;
};

static struct room *enter_file(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	void *at;

	if (fd < 0 || ftruncate(fd, sizeof(struct room)) != 0)
		fail("cannot open", name);
	at = mmap(NULL, sizeof(struct room), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		fail("cannot map", name);
	close(fd);
	return at;
}

/* Lets other processes run.  Not by sched_yield(2): on a busy machine it takes a hundred times as
 * long, and on an idle one no time, in which nothing can overlap. */
static void linger(void)
{
	struct timespec moment = {0, 1000};

	nanosleep(&moment, NULL);
}

static void write_round(struct room *room)
{
	long seen;

	if (atomic_fetch_add(&room->writers, 1) > 0 || atomic_load(&room->readers) > 0)
		atomic_fetch_add(&room->overlaps, 1);
	seen = room->rounds;
	linger();
	room->rounds = seen + 1;
	if (atomic_fetch_sub(&room->writers, 1) != 1)
		atomic_fetch_add(&room->overlaps, 1);
}

static void read_round(struct room *room)
{
	atomic_fetch_add(&room->readers, 1);
	if (atomic_load(&room->writers) > 0)
		atomic_fetch_add(&room->overlaps, 1);
	linger();
	if (atomic_load(&room->writers) > 0)
		atomic_fetch_add(&room->overlaps, 1);
	atomic_fetch_add(&room->reads, 1);
	atomic_fetch_sub(&room->readers, 1);
}

/* inside [-s] FILE [COUNT]: enters and leaves COUNT times, as writer or with -s as reader. */
int cmd_inside(int argc, char **argv)
{
	int reader = argc > 1 && strcmp(argv[1], "-s") == 0;
	struct room *room;
	long count;

	if (argc - reader < 2)
		misuse("inside [-s] FILE [COUNT]");
	room = enter_file(argv[1 + reader]);
	count = argc - reader > 2 ? number(argv[2 + reader]) : 1;
	prctl(PR_SET_TIMERSLACK, 1UL); /* else a sleep takes 50 us and more */
	while (count-- > 0)
		(reader ? read_round : write_round)(room);
	return 0;
}

/* verdict FILE ROUNDS: fails on an overlap, or unless the writers have made exactly ROUNDS
 * rounds. */
int cmd_verdict(int argc, char **argv)
{
	struct room *room;
	long overlaps;

	if (argc != 3)
		misuse("verdict FILE ROUNDS");
	room = enter_file(argv[1]);
	overlaps = atomic_load(&room->overlaps);
	printf("rounds %ld reads %ld overlaps %ld\n", room->rounds, atomic_load(&room->reads),
	    overlaps);
	return overlaps == 0 && room->rounds == number(argv[2]) ? 0 : 1;
}
