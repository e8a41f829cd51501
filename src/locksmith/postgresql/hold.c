/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/common/clock.h"
#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/postgresql/pglock.h"

#include <inttypes.h>
#include <stdlib.h>

#define RETRY (NS_PER_S / 2)

/* Our row is committed: the next one in the queue may look. */
static int let_next_come(struct pglock *k)
{
	int64_t until = k->deadline - k->ttl / 10;

	if (PG_DO(k, until, "SELECT pg_advisory_unlock($1::bigint)", k->key) < 0)
		return -1;
	return k->listening ? pg_do(k, until, "UNLISTEN semlock", 0, NULL) : 0;
}

static int64_t renewal_time(const struct pglock *k)
{
	return k->deadline - k->ttl + k->ttl / 3;
}

/* Until NEXT, the time to renew, or until it is time to let go. -1: the session has ended. */
static int rest(struct pglock *k, int64_t next)
{
	while (clock_boottime() < next && !protocol_released())
		if (pg_wait(k, next) != 0)
			return -1;
	return 0;
}

/* Sets *next. An error like that of a full disk ends no lock that has time left. */
static int renew(struct pglock *k, int64_t *next)
{
	int64_t last_call = k->deadline - k->ttl / 10;
	int rows = pg_renew(k, last_call);

	*next = clock_boottime() + RETRY;
	if (rows < 0 && k->failure.away && k->state[0] != '\0' && PQstatus(k->db) == CONNECTION_OK && *next < last_call)
		return 0;
	if (rows == 0)
		failure_set(&k->failure, EXIT_LOST, "its row was removed");
	if (rows <= 0)
		return -1;
	*next = renewal_time(k);
	say("HELD deadline=%" PRId64, k->deadline);
	return 0;
}

/* The row excludes until its time has passed, whatever became of the session. If the answer is lost, the row
   may be gone already; before the deadline nobody else can have removed it. */
int pg_release(struct pglock *k)
{
	int64_t until = clock_boottime() + k->ttl / 2;
	int rows = PQstatus(k->db) == CONNECTION_OK ? pg_remove(k, until) : -1;
	bool again = rows < 0;

	if (again && pg_open(k, until) == 0)
		rows = pg_remove(k, until);
	k->fencing_token[0] = '\0';
	if (rows > 0 || (rows == 0 && again && clock_boottime() < k->deadline))
		return EXIT_RELEASED;
	if (rows == 0)
		failure_set(&k->failure, EXIT_LOST, "its row was removed before it was released");
	else
		failure_set(&k->failure, EXIT_UNAVAILABLE, "could not be released, and lapses by itself");
	return k->failure.status;
}

int pg_hold(struct pglock *k)
{
	int64_t next = renewal_time(k);
	int status;

	k->acquiring = false;
	say_ok(atoll(k->fencing_token), k->slot, k->ttl, k->deadline);
	if (let_next_come(k) == 0) {
		if (!loop_wait_for_start(k->deadline - k->ttl / 10))
			failure_set(&k->failure, EXIT_LOST, "semlock stood still, and did not start the command in time");
		while (protocol_started() && !protocol_released() && rest(k, next) == 0)
			if (!protocol_released() && renew(k, &next) != 0)
				break;
	}
	if (!protocol_released())
		return k->failure.status = EXIT_LOST;
	status = pg_release(k);
	if (status == EXIT_RELEASED)
		say("FREE");
	return status;
}
