/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "torture.h"

long rounds(void)
{
	return atomic_load(&board->done) + atomic_load(&board->shared);
}

static bool is_kernel(const char *method)
{
	return strcmp(method, "flock") == 0 || strcmp(method, "ofd") == 0 ||
	       strcmp(method, "posix") == 0;
}

bool left_over(const char *method)
{
	int code =
	    system("test -z \"$(ls -A | grep -vE '^(board|messages|witness|counter|lock)$')\"");

	if (code == 0 && strcmp(method, "rename") != 0 && !is_kernel(method))
		code = access("lock", F_OK) == 0;
	return code != 0;
}

/* A killed or terminated process may have counted without reporting; nothing else may differ. */
static long updates_lost(void)
{
	FILE *file = fopen("counter", "r");
	long value = 0, done = atomic_load(&board->done);

	if (file != NULL && fread(&value, sizeof value, 1, file) != 1)
		value = 0;
	if (file != NULL)
		fclose(file);
	if (value < done)
		return done - value;
	return value - done > atomic_load(&board->kills) + atomic_load(&board->terms) ? value - done
	                                                                              : 0;
}

static void show_overlap(void)
{
	unsigned number = atomic_load(&board->overlap);

	printf("overlap: process %d came in while %d was inside; what came before that:\n",
	    atomic_load(&board->event[number % EVENTS].pid), atomic_load(&board->met));
	show_events(number + 1);
}

/* Where processes start slowly (SLOWNESS, of make check), a replacer waits long enough to meet each
 * waiter that was left stopped. */
static long refusals_allowed(void)
{
	const char *slowness = getenv("SLOWNESS");
	const long few = 1 + rounds() / 1000;

	return slowness != NULL && atol(slowness) > 1 ? few + atomic_load(&board->halts) : few;
}

int verdict(const char *method, int count, int64_t took, bool stuck, bool litter)
{
	long updates = updates_lost();

	printf("%s: %ld acquisitions (%ld of them shared or slots) by %d in %.1f s; %ld kills, %ld "
	       "stops, "
	       "%ld terms, %ld lock files deleted\n",
	    method, rounds(), atomic_load(&board->shared), count, (double)took / 1e9,
	    atomic_load(&board->kills), atomic_load(&board->stops), atomic_load(&board->terms),
	    atomic_load(&board->deleted));
	printf("%s: %s; %ld waiters left stopped, %ld replacers refused for one, %ld bursts of "
	       "hostile tickets, and %ld times the queue blocked, %ld locks of dead processes "
	       "broken\n",
	    method, user_is_other(1) ? "two users" : "one user", atomic_load(&board->halts),
	    atomic_load(&board->refusals), atomic_load(&board->bursts), atomic_load(&board->blocks),
	    atomic_load(&board->broken));
	printf("%s: %ld overlaps, %ld lost, %ld updates lost, %ld failures, %s, %s; longest time "
	       "without progress %.3f s\n",
	    method, atomic_load(&board->overlaps), atomic_load(&board->lost), updates,
	    atomic_load(&board->failures), stuck ? "STUCK" : "not stuck",
	    litter ? "something LEFT" : "nothing left",
	    (double)atomic_load(&board->longest_ns) / 1e9);
	if (atomic_load(&board->overlaps) > 0)
		show_overlap();
	return stuck || litter || atomic_load(&board->broken) > 0 ||
	       atomic_load(&board->refusals) > refusals_allowed() || updates != 0 ||
	       atomic_load(&board->overlaps) > 0 || atomic_load(&board->lost) > 0 ||
	       atomic_load(&board->failures) > 0;
}
