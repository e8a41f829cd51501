/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/common/clock.h"
#include "locksmith/common/engine.h"
#include "locksmith/common/protocol.h"
#include "locksmith/postgresql/pglock.h"

#include <stdio.h>

#define DEFAULT_TTL (15 * NS_PER_S)

static struct pglock the_lock;

static int lock(struct pglock *k)
{
	int status = pg_acquire(k);

	if (status == EXIT_BUSY)
		say("BUSY %s", k->who);
	return status == EXIT_RELEASED && k->fencing_token[0] != '\0' ? pg_hold(k) : status;
}

static int run(const struct options *o, struct failure *failure)
{
	struct pglock *k = &the_lock;
	int status;

	*k = (struct pglock){.options = o, .ttl = o->ttl > 0 ? o->ttl : DEFAULT_TTL, .slot = -1};
	k->acquiring = o->action == ACTION_LOCK;
	if (o->stale_given)
		return failure_set(failure, EXIT_USAGE, "--stale is not for postgresql: a lease (--ttl) ends by itself"),
		       EXIT_USAGE;
	snprintf(k->name, sizeof k->name, "%s", o->url.path);
	snprintf(k->lease, sizeof k->lease, "%lld ms", (long long)(k->ttl / NS_PER_MS));
	if (pg_open(k, pg_answer_by(k)) != 0)
		status = k->failure.status;
	else
		status = o->action == ACTION_WHO ? pg_who(k) : lock(k);
	*failure = k->failure;
	return status;
}

/* The lock is lost, and no process runs under it any more: waiters need not wait for the end of the lease. */
static void end(bool stopped)
{
	struct pglock *k = &the_lock;

	if (k->fencing_token[0] != '\0' && stopped && k->options->action == ACTION_LOCK && clock_boottime() < k->deadline)
		pg_release(k);
	PQfinish(k->db);
	k->db = NULL;
}

const struct engine engine = {.name = "postgresql",
    .schemes = "postgresql postgres",
    .words = "shared slots order token",
    .parse = pg_parse,
    .run = run,
    .end = end};
