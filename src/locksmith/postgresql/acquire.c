/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/common/clock.h"
#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/postgresql/pglock.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* How long a row takes at most that a session with the advisory lock is about to add. */
#define ENTERING NS_PER_S

int pg_try_queue(struct pglock *k)
{
	return PG_DO(k, pg_answer_by(k), "SELECT WHERE pg_try_advisory_lock($1::bigint)", k->key);
}

/* In the server's own queue, until we are the first. EXIT_RELEASED or a status. */
static int queue(struct pglock *k)
{
	int64_t rest = (k->options->until - clock_boottime()) / NS_PER_MS;
	char milliseconds[16];
	int got = pg_try_queue(k);

	if (got != 0)
		return got > 0 ? EXIT_RELEASED : k->failure.status;
	say_wait(pg_look(k) > 0 ? k->who : "note=for the waiters in front");
	if (rest <= 0)
		return EXIT_BUSY;
	/* The server ends the wait itself, so a server that is silent is not taken for a lock that is held. */
	snprintf(milliseconds, sizeof milliseconds, "%d", rest < INT_MAX ? (int)rest : 0);
	if (PG_DO(k, k->options->answer_by,
		"SELECT set_config('lock_timeout', $2, true), pg_advisory_lock($1::bigint)", k->key, milliseconds) >= 0)
		return EXIT_RELEASED;
	return strcmp(k->state, "55P03") == 0 ? EXIT_BUSY : k->failure.status;
}

/* Without waiting. The advisory lock may be taken by a session that is about to add its row, which need not be in
   our way, or by one that waits, and is not to be overtaken. */
static int queue_no_wait(struct pglock *k)
{
	int64_t end = clock_min(k->options->until, clock_boottime() + ENTERING);

	for (;;) {
		int got = pg_try_queue(k), held;

		if (got != 0)
			return got > 0 ? EXIT_RELEASED : k->failure.status;
		held = pg_look(k);
		/* No table: the session that has the advisory lock makes it. */
		if (held < 0 && !pg_no_table(k))
			return k->failure.status;
		if ((held > 0 && k->lapses > clock_boottime()) || clock_boottime() >= end)
			return EXIT_BUSY;
		loop_wait(clock_boottime() + clock_jitter(10 * NS_PER_MS));
		if (protocol_released())
			return EXIT_RELEASED;
	}
}

/* Sleeps until a lock of our name is released, at most until the moment given. */
static int sleep_until(struct pglock *k, int64_t until)
{
	bool released = false;

	for (;;) { /* the first may have come with the answer of the look */
		PGnotify *n;

		while ((n = PQnotifies(k->db)) != NULL) {
			released = released || strcmp(n->extra, k->key) == 0;
			PQfreemem(n);
		}
		if (released || clock_boottime() >= until || protocol_released())
			return 0;
		if (pg_wait(k, until) != 0)
			return -1;
	}
}

/* The first in the queue, a row is in the way: sleeps. EXIT_RELEASED: look again. */
static int wait_for_row(struct pglock *k)
{
	int held;

	if (k->options->no_wait || clock_boottime() >= k->options->until)
		return pg_look(k) < 0 ? k->failure.status : EXIT_BUSY;
	/* Listen first, look again after that: a release in between would not be heard. */
	if (!k->listening)
		k->listening = pg_do(k, pg_answer_by(k), "LISTEN semlock", 0, NULL) == 0;
	held = k->listening ? pg_look(k) : -1;
	if (held < 0)
		return k->failure.status;
	if (held == 0)
		return EXIT_RELEASED;
	say_wait(k->who);
	/* A row may be removed by hand, without a word: look every second. */
	return sleep_until(k, clock_min(clock_min(k->lapses, clock_boottime() + NS_PER_S), k->options->until)) == 0
		   ? EXIT_RELEASED
		   : k->failure.status;
}

int pg_acquire(struct pglock *k)
{
	int s = k->options->no_wait ? queue_no_wait(k) : queue(k);

	while (s == EXIT_RELEASED && !protocol_released()) {
		int entered = pg_enter(k, clock_min(pg_answer_by(k), clock_boottime() + k->ttl / 2)), expired;

		if (entered > 0)
			return EXIT_RELEASED;
		expired = entered == 0 ? pg_expire(k) : -1;
		if (expired < 0)
			return k->failure.status;
		if (expired == 0)
			s = wait_for_row(k);
	}
	return s;
}
