/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "locksmith/common/engine.h"
#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/postgresql/conninfo.h"
#include "locksmith/postgresql/place.h"
#include "locksmith/postgresql/session.h"
#include "locksmith/postgresql/waiter.h"

#define MEMORY (16 << 20)
/* After one login has failed, PgBouncer refuses all clients for 15 s (server_login_retry).  From
 * the first try to renew until semlock ends the command, a third of the lease passes: that must be
 * longer than 15 s.  A place in the queue need not last as long, because a place that has lapsed
 * keeps its turn. */
#define LOCK_TTL (60 * SECOND)
#define PLACE_TTL (15 * SECOND)

static struct pg_lock the_lock;

/* A malicious server can send a row of a gigabyte, or rows forever.  Limit our memory, so that
 * libpq runs out of it before the machine does. */
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

static int prepare(struct options *options, struct error *error)
{
	struct pg_lock *lock = &the_lock;

	if (conninfo_parse(options->url_text, &options->url, error) != 0)
		return -1;
	lock->options = options;
	lock->ttl = options->ttl > 0 ? options->ttl : engine.ttl;
	lock->place_ttl = options->ttl > 0 ? options->ttl : PLACE_TTL;
	lock->slot = -1;
	lock->room = 100;
	random_bytes(&lock->id, sizeof lock->id);
	lock->id &= INT64_MAX;
	limit_memory();
	return 0;
}

static enum look look(struct turn *turn, struct error *error)
{
	struct pg_lock *lock = &the_lock;
	enum look look;

	lock->stage = PG_ENTERS;
	lock->error.kind = ERROR_NONE;
	look = waiter_look(lock, turn);
	*error = lock->error;
	if (look != LOOK_TAKEN)
		return look;
	lock->stage = PG_HOLDS;
	turn->token = atoll(lock->token);
	turn->slot = lock->slot;
	turn->deadline = lock->deadline;
	return LOOK_TAKEN;
}

static enum renewed renew(struct turn *turn, int64_t until, struct error *error)
{
	struct pg_lock *lock = &the_lock;
	int rows = place_renew(lock, earlier(until, session_try_by(lock)));

	turn->deadline = lock->deadline;
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
	if (!lock->failure_noted) /* say it now: semlock may end the command before we give up */
		say(SAYS_NOTE " not renewed yet: %s", error->text);
	lock->failure_noted = true;
	return RENEW_AGAIN;
}

/* If a holder loses its session, do nothing here: the next renewal opens another. */
static void rest(struct turn *turn, int64_t until)
{
	struct pg_lock *lock = &the_lock;

	if (lock->stage == PG_ENTERS)
		waiter_rest(lock, turn, until);
	else if (lock->db == NULL)
		loop_wait(until);
	else
		session_wait(lock, until);
}

/* Remove our row, over a new session if needed. */
static enum freed release(struct turn *turn, int64_t until, struct error *error)
{
	struct pg_lock *lock = &the_lock;
	int rows = 1;

	(void)turn;
	lock->stage = PG_LEAVES;
	if (lock->row != PG_NO_ROW)
		rows = place_remove(lock, until);
	*error = lock->error;
	if (rows < 0)
		return FREE_AGAIN;
	lock->row = PG_NO_ROW;
	if (rows > 0)
		return FREED;
	error_plain(error, ERROR_LOST, "its row was removed before the lock was released");
	return FREE_GONE;
}

static enum look who(struct turn *turn, struct error *error)
{
	enum look look = place_who(&the_lock);

	(void)turn;
	*error = the_lock.error;
	return look;
}

static void hang_up(void)
{
	session_close(&the_lock);
}

const struct engine engine = {.name = "postgresql",
    .schemes = "postgresql postgres",
    .words = "shared slots order token",
    .ttl = LOCK_TTL,
    .beat = LEASE_RENEW,
    .prepare = prepare,
    .look = look,
    .rest = rest,
    .renew = renew,
    .release = release,
    .who = who,
    .hang_up = hang_up};
