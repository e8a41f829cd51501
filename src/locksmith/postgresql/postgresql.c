/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/common/renewal.h"
#include "locksmith/postgresql/pglock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define DEFAULT_TTL (15 * SECOND)
#define AGAIN (SECOND / 2) /* between two tries of a server that is not there */
#define POOLED_LOOK \
	SECOND /* between two looks of the first waiters, where a pooler passes no word on */
#define LAST_TRIES (10 * SECOND) /* for the release, while the server is not there */
#define MEMORY (16 << 20)

static struct pglock the_lock;

/* A server can send a row of a gigabyte, or rows without end: libpq is to run out of memory before
 * the machine does. */
static void limit_memory(void)
{
	long pages;
	FILE *statm = fopen("/proc/self/statm", "re");

	if (statm == NULL)
		return;
	if (fscanf(statm, "%*s %*s %*s %*s %*s %ld", &pages) == 1) {
		rlim_t most = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + MEMORY;

		setrlimit(RLIMIT_DATA, &(struct rlimit){most, most});
	}
	fclose(statm);
}

/* Between two signs of life, with each of which comes a look: at most six a minute, if the lease
 * leaves five seconds for a second and a third try; else two in a lease.  Several waiters
 * spread. */
static int64_t between_signs(int64_t lease)
{
	int64_t few = earlier(10 * SECOND, lease - 5 * SECOND),
		time = few > lease * 2 / 5 ? few : lease * 2 / 5;

	return time + spread(time / 10);
}

/* Others are before us, and we shall hear of our turn, or a pooler passes no word on: nothing is to
 * be decided.  After a lost session the first sign of life finds out whether the new one is ours,
 * and is to listen again. */
static bool far_from_turn(const struct pglock *lock)
{
	return lock->waits && lock->before > 1 && !lock->session.heard &&
	       (lock->session.listening || !lock->session.ours);
}

/* In the queue, until we hold (lock->token is set) or the wait is over. */
static enum engine_outcome acquire(struct pglock *lock)
{
	const struct options *options = lock->options;

	while (!protocol_released()) {
		int got = far_from_turn(lock) ? pg_beat(lock) : 0;
		int64_t now, next;

		if (got == 0 && !far_from_turn(lock))
			got = pg_step(lock);
		/* We have entered: the standby has to confirm it.  It may take long, and our row
		 * may have lapsed meanwhile: then another step tells. */
		if (got > 0 && pg_confirm(lock, lock->waits || options->wait != NEVER
						    ? options->answer_by
						    : pg_answer_by(lock)) != 0)
			got = -1;
		else if (got > 0 &&
			 clock_boottime() < lease_moment(lock->deadline, lock->ttl, LEASE_ENTER))
			return ENGINE_TAKEN;
		now = clock_boottime();
		if (got < 0) {
			char text[sizeof lock->error.text + 32];

			if (lock->error.kind != ERROR_AWAY || options->no_wait ||
			    now >= options->until ||
			    (!lock->waits && options->wait == NEVER &&
				strcmp(lock->session.state, "55P03") != 0))
				return protocol_released() ? ENGINE_RELEASED : ENGINE_FAILED;
			snprintf(text, sizeof text, "note=for the server: %s", lock->error.text);
			say_wait(text);
			loop_wait(earlier(now + spread(AGAIN), options->until));
			continue;
		}
		if (lock->token[0] != '\0')
			continue;
		if (options->no_wait)
			return ENGINE_BUSY;
		lock->waits = true;
		say_wait(lock->who);
		if (now < options->until && lock->session.ours && !lock->session.listening)
			continue;
		next = now + between_signs(lock->ttl);
		if (lock->before <= 1)
			next = earlier(next, lock->session.ours ? lock->lapses : now + POOLED_LOOK);
		next = earlier(next, options->until);
		while (!lock->session.heard && clock_boottime() < next && !protocol_released())
			if (lock->db == NULL || pg_wait(lock, next) != 0)
				break;
		if (clock_boottime() >= options->until)
			return ENGINE_BUSY;
	}
	return ENGINE_RELEASED;
}

/* Removes our row, over a new session if need be.  The removal of a lock is tried for longer,
 * because others wait for it. */
static enum engine_outcome leave(struct pglock *lock)
{
	int64_t now = clock_boottime();
	int64_t until =
	    lock->token[0] != '\0' ? earlier(lock->deadline, now + LAST_TRIES) : now + SECOND;
	bool again = false;
	int rows;

	lock->acquiring = false;
	while ((rows = pg_remove(lock, until)) < 0 && lock->error.kind == ERROR_AWAY &&
	       clock_boottime() < until) {
		again = true;
		loop_pause(clock_boottime() + spread(AGAIN / 2));
	}
	lock->has_row = false;
	lock->token[0] = '\0';
	/* An answer may have been lost; before the deadline nobody else can have removed it. */
	if (rows > 0 || (rows == 0 && again && clock_boottime() < lock->deadline))
		return ENGINE_RELEASED;
	if (rows == 0)
		error_plain(&lock->error, ERROR_LOST, "its row was removed before it was released");
	else
		error_plain(&lock->error, ERROR_UNAVAILABLE,
		    "could not be released, and lapses by itself");
	return ENGINE_FAILED;
}

static enum renewed renew(struct renewal *renewal, int64_t until, struct error *error)
{
	struct pglock *lock = renewal->lock;
	int rows = pg_renew(lock, earlier(until, pg_try_by(lock)));

	renewal->deadline = lock->deadline;
	lock->noted = rows < 0 && lock->noted;
	if (rows > 0)
		return RENEWED;
	if (rows == 0)
		error_plain(&lock->error, ERROR_LOST, "its row was removed");
	*error = lock->error;
	if (rows == 0 || lock->error.kind != ERROR_AWAY)
		return RENEW_GONE;
	if (!lock->noted) /* semlock may end the command before we give up */
		say(SAYS_NOTE " not renewed yet: %s", error->text);
	lock->noted = true;
	return RENEW_AGAIN;
}

/* A session that ends costs nothing: the next renewal opens another. */
static int rest(struct renewal *renewal, int64_t until, struct error *error)
{
	struct pglock *lock = renewal->lock;

	(void)error;
	if (lock->db == NULL)
		loop_wait(until);
	else
		pg_wait(lock, until);
	return 0;
}

static enum engine_outcome hold(struct pglock *lock)
{
	struct renewal renewal = {.lock = lock,
	    .lease = lock->ttl,
	    .deadline = lock->deadline,
	    .at = LEASE_RENEW,
	    .retry = AGAIN,
	    .renew = renew,
	    .rest = rest};
	enum engine_outcome outcome;

	lock->acquiring = false;
	lock->held = true;
	if (renewal_hold(&renewal, atoll(lock->token), lock->slot, &lock->error) != 0)
		return ENGINE_FAILED;
	outcome = leave(lock);
	if (outcome == ENGINE_RELEASED)
		say(SAYS_FREE);
	return outcome;
}

static enum engine_outcome run(const struct options *options, struct error *error)
{
	struct pglock *lock = &the_lock;
	enum engine_outcome outcome = ENGINE_FAILED;

	*lock = (struct pglock){.options = options,
	    .ttl = options->ttl > 0 ? options->ttl : DEFAULT_TTL,
	    .slot = -1};
	lock->acquiring = options->action == ACTION_LOCK;
	random_bytes(&lock->id, sizeof lock->id);
	lock->id &= INT64_MAX;
	limit_memory();
	if (options->stale_given)
		error_plain(&lock->error, ERROR_USAGE,
		    "--stale is not for postgresql: a lease (--ttl) ends by itself");
	else
		outcome = options->action == ACTION_WHO ? pg_who(lock) : acquire(lock);
	if (outcome == ENGINE_BUSY && options->action == ACTION_LOCK) {
		/* A standby that is away is in everybody's way, and no holder is. */
		if (pg_confirm(lock, pg_answer_by(lock)) != 0)
			outcome = ENGINE_FAILED;
		else
			say(SAYS_BUSY " %s", lock->who);
	}
	if (outcome == ENGINE_TAKEN)
		outcome = protocol_released() ? ENGINE_RELEASED : hold(lock);
	*error = lock->error;
	return outcome;
}

/* If the lock is lost, and no process runs under it any more, waiters need not wait for the end of
 * the lease. */
static void end(bool stopped)
{
	struct pglock *lock = &the_lock;

	if (lock->has_row && (stopped || !lock->held))
		leave(lock);
	pg_close(lock);
}

const struct engine engine = {.name = "postgresql",
    .schemes = "postgresql postgres",
    .words = "shared slots order token",
    .parse = pg_parse,
    .run = run,
    .end = end};
