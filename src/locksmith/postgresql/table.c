/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/common/clock.h"
#include "locksmith/postgresql/pglock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two sessions that create at once would both fail: one waits for the other. */
static const char create[] =
    "SELECT pg_advisory_xact_lock(7301); CREATE SCHEMA IF NOT EXISTS semlock;"
    " CREATE TABLE IF NOT EXISTS semlock.held (name text NOT NULL,"
    " token bigint GENERATED ALWAYS AS IDENTITY, mode text NOT NULL, slot int,"
    " until timestamptz NOT NULL, holder text NOT NULL, PRIMARY KEY (name, token))";

/* What the server has to plan is a third of what a lock costs: each mode has its own words. $1: the name. */
struct words {
	char conflict[200];
	char slot[200]; /* the number of ours */
};

static struct words words_for(const struct options *o)
{
	struct words w = {"EXISTS (SELECT FROM semlock.held WHERE name = $1)", "NULL::int"};

	if (o->mode == LEASE_SHARED)
		w = (struct words){
		    "EXISTS (SELECT FROM semlock.held WHERE name = $1 AND mode <> 'shared')", "NULL::int"};
	if (o->mode != LEASE_SLOTS)
		return w;
	snprintf(w.conflict, sizeof w.conflict,
	    "(SELECT count(*) >= %u OR coalesce(bool_or(mode <> 'slots'), false) FROM semlock.held WHERE name = $1)", o->slots);
	snprintf(w.slot, sizeof w.slot,
	    "(SELECT min(n) FROM generate_series(0, %u) AS n WHERE NOT EXISTS"
	    " (SELECT FROM semlock.held WHERE name = $1 AND slot = n))", o->slots - 1);
	return w;
}

static int not_granted(struct pglock *k, const char *first)
{
	const char *user = PQuser(k->db);

	return failure_set(&k->failure, EXIT_NOTPERMITTED,
	    "%.60s may not use the table semlock.held: %sGRANT USAGE ON SCHEMA semlock TO %.60s; "
	    "GRANT SELECT, INSERT, UPDATE, DELETE ON semlock.held TO %.60s",
	    user, first, user, user);
}

/* 0: the table is there now. */
static int make_table(struct pglock *k, int64_t until)
{
	int made = pg_do(k, until, create, -1, NULL);

	if (made < 0 && strcmp(k->state, "42501") == 0)
		return not_granted(k, "as the owner of the database take this lock once, then ");
	return made;
}

bool pg_no_table(const struct pglock *k)
{
	return strcmp(k->state, "42P01") == 0 || strcmp(k->state, "3F000") == 0;
}

/* The table is made by the first lock: 0 then, and the statement is to be tried again. */
static int mend(struct pglock *k, int64_t until)
{
	if (pg_no_table(k))
		return make_table(k, until);
	return strcmp(k->state, "42501") == 0 ? not_granted(k, "its owner can ") : -1;
}

/* The note may be a command in any encoding, or be cut within a character, and the server refuses that (SQLSTATE 22).
   False: TEXT was ASCII already. */
static bool made_ascii(const struct pglock *k, char *text)
{
	bool changed = false;

	for (; *text != '\0' && strncmp(k->state, "22", 2) == 0; text++)
		if ((unsigned char)*text >= 0x80) {
			*text = '?';
			changed = true;
		}
	return changed;
}

int pg_enter(struct pglock *k, int64_t until)
{
	struct words w = words_for(k->options);
	char sql[800], holder[400];
	int64_t sent;
	PGresult *r;
	int rows;

	snprintf(sql, sizeof sql,
	    "INSERT INTO semlock.held (name, mode, slot, until, holder)"
	    " SELECT $1, $2, %s, clock_timestamp() + $3::interval, $4 WHERE NOT %s RETURNING token, slot",
	    w.slot, w.conflict);
	options_holder(k->options, holder, sizeof holder);
	/* Not to be broken off: without an answer the row may be there, and keeps others out for a lease. */
	k->acquiring = false;
	do {
		sent = clock_boottime();
		r = PG_ASK(k, until, sql, k->name, lease_mode_name(k->options->mode), k->lease, holder);
	} while (r == NULL && (made_ascii(k, holder) || mend(k, until) == 0));
	k->acquiring = k->options->action == ACTION_LOCK;
	if (r == NULL)
		return -1;
	rows = PQntuples(r);
	if (rows > 0) {
		snprintf(k->fencing_token, sizeof k->fencing_token, "%s", PQgetvalue(r, 0, 0));
		k->slot = PQgetisnull(r, 0, 1) ? -1 : atoi(PQgetvalue(r, 0, 1));
		k->deadline = sent + k->ttl;
	}
	PQclear(r);
	return rows > 0;
}

int pg_expire(struct pglock *k)
{
	return PG_DO(k, pg_answer_by(k),
	    "DELETE FROM semlock.held WHERE name = $1 AND until <= clock_timestamp()", k->name);
}

int pg_look(struct pglock *k)
{
	char sql[600];
	PGresult *r;
	int rows;

	snprintf(sql, sizeof sql,
	    "SELECT 'mode=' || mode || coalesce(' slot=' || slot, '') || ' ' || holder,"
	    " ceil(extract(epoch FROM until - clock_timestamp()) * 1000)::bigint"
	    " FROM semlock.held WHERE name = $1 AND %s ORDER BY until LIMIT 1",
	    words_for(k->options).conflict);
	r = PG_ASK(k, pg_answer_by(k), sql, k->name);
	if (r == NULL)
		return -1;
	rows = PQntuples(r);
	if (rows > 0) {
		snprintf(k->who, sizeof k->who, "%s", PQgetvalue(r, 0, 0));
		k->lapses = clock_boottime() + atoll(PQgetvalue(r, 0, 1)) * NS_PER_MS;
	}
	PQclear(r);
	return rows > 0;
}

int pg_renew(struct pglock *k, int64_t until)
{
	int64_t sent = clock_boottime();
	int rows = PG_DO(k, until,
	    "UPDATE semlock.held SET until = clock_timestamp() + $3::interval WHERE name = $1 AND token = $2::bigint",
	    k->name, k->fencing_token, k->lease);

	if (rows > 0)
		k->deadline = sent + k->ttl;
	return rows;
}

/* The commit need not be on disk: if the server forgets it in a crash, the row's time passes. */
int pg_remove(struct pglock *k, int64_t until)
{
	return PG_DO(k, until,
	    "WITH gone AS (DELETE FROM semlock.held WHERE name = $1 AND token = $2::bigint RETURNING token)"
	    " SELECT pg_notify('semlock', $3), set_config('synchronous_commit', 'off', true) FROM gone",
	    k->name, k->fencing_token, k->key);
}
