/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "locksmith/common/engine.h"
#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/common/renewal.h"
#include "locksmith/postgresql/conninfo.h"
#include "locksmith/postgresql/place.h"
#include "locksmith/postgresql/session.h"
#include "locksmith/postgresql/waiter.h"

#define DEFAULT_TTL (15 * SECOND)
#define AGAIN (SECOND / 2)       /* between two tries of a server that is not there */
#define LAST_TRIES (10 * SECOND) /* for the release, while the server is not there */
#define MEMORY (16 << 20)

static struct pg_lock the_lock;

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

/* Remove our row, over a new session if need be.  The removal of a lock is tried for longer,
 * because others wait for it. */
static enum engine_outcome leave(struct pg_lock *lock)
{
	int64_t now = clock_boottime();
	int64_t until =
	    lock->token[0] != '\0' ? earlier(lock->deadline, now + LAST_TRIES) : now + SECOND;
	bool again = false;
	struct error reason;
	int rows;

	lock->stage = PG_LEAVES;
	while ((rows = place_remove(lock, until)) < 0 && lock->error.kind == ERROR_AWAY &&
	       clock_boottime() < until) {
		again = true;
		loop_pause(clock_boottime() + spread(AGAIN / 2));
	}
	reason = lock->error;
	lock->row = PG_NO_ROW;
	lock->token[0] = '\0';
	/* An answer may have been lost; before the deadline nobody else can have removed it. */
	if (rows > 0 || (rows == 0 && again && clock_boottime() < lock->deadline))
		return ENGINE_RELEASED;
	if (rows == 0)
		error_plain(&lock->error, ERROR_LOST, "its row was removed before it was released");
	else
		error_plain(&lock->error, ERROR_UNAVAILABLE,
		    "could not be released, and lapses by itself: %.300s", reason.text);
	return ENGINE_FAILED;
}

static enum renewed renew(struct renewal *renewal, int64_t until, struct error *error)
{
	struct pg_lock *lock = renewal->lock;
	int rows = place_renew(lock, earlier(until, session_try_by(lock)));

	renewal->deadline = lock->deadline;
	lock->failure_noted = rows < 0 && lock->failure_noted;
	if (rows > 0)
		return RENEWED;
	if (rows == 0)
		error_plain(&lock->error, ERROR_LOST, "its row was removed");
	*error = lock->error;
	if (error->kind != ERROR_AWAY) {
		error->kind = ERROR_LOST;
		return RENEW_GONE;
	}
	if (!lock->failure_noted) /* semlock may end the command before we give up */
		say(SAYS_NOTE " not renewed yet: %s", error->text);
	lock->failure_noted = true;
	return RENEW_AGAIN;
}

/* A session that ends costs nothing: the next renewal opens another. */
static int rest(struct renewal *renewal, int64_t until, struct error *error)
{
	struct pg_lock *lock = renewal->lock;

	(void)error;
	if (lock->db == NULL)
		loop_wait(until);
	else
		session_wait(lock, until);
	return 0;
}

static enum engine_outcome hold(struct pg_lock *lock)
{
	struct renewal renewal = {.lock = lock,
	    .lease = lock->ttl,
	    .deadline = lock->deadline,
	    .at = LEASE_RENEW,
	    .retry = AGAIN,
	    .renew = renew,
	    .rest = rest};
	enum engine_outcome outcome;

	lock->stage = PG_HOLDS;
	if (renewal_hold(&renewal, atoll(lock->token), lock->slot, &lock->error) != 0)
		return ENGINE_FAILED;
	outcome = leave(lock);
	if (outcome == ENGINE_RELEASED)
		say(SAYS_FREE);
	return outcome;
}

static enum engine_outcome run(const struct options *options, struct error *error)
{
	static bool ran; /* and was not lucky */
	struct pg_lock *lock = &the_lock;
	enum engine_outcome outcome = ENGINE_FAILED;

	/* Most of it is room for a long query: pages that are never written, and cost no memory as
	 * long as no zeros are written either. */
	if (ran)
		memset(lock, 0, sizeof *lock);
	ran = true;
	lock->options = options;
	lock->ttl = options->ttl > 0 ? options->ttl : DEFAULT_TTL;
	lock->slot = -1;
	lock->room = 100;
	lock->stage = options->action == ACTION_LOCK ? PG_ENTERS : PG_LOOKS;
	random_bytes(&lock->id, sizeof lock->id);
	lock->id &= INT64_MAX;
	limit_memory();
	if (options->stale_given)
		error_plain(&lock->error, ERROR_USAGE,
		    "--stale is not for postgresql: a lease (--ttl) ends by itself");
	else
		outcome = options->action == ACTION_WHO ? place_who(lock) : waiter_acquire(lock);
	if (outcome == ENGINE_BUSY && options->action == ACTION_LOCK) {
		/* A standby that is away is in everybody's way, and no holder is. */
		if (place_confirm(lock, session_answer_by(lock)) != 0)
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
	struct pg_lock *lock = &the_lock;

	if (lock->row != PG_NO_ROW && (stopped || lock->stage != PG_HOLDS))
		leave(lock);
	session_close(lock);
}

const struct engine engine = {.name = "postgresql",
    .schemes = "postgresql postgres",
    .words = "shared slots order token",
    .parse = conninfo_parse,
    .run = run,
    .end = end};
