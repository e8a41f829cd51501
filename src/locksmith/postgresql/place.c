/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/postgresql/pglock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The session of row PID has ended, and the server has not been started since: the row's client is
 * gone, or will be back in a moment. (The number may be another session's by now: then the row
 * lapses.) */
#define SESSION_ENDED \
	"(pid IS NOT NULL AND boot = pg_postmaster_start_time() AND NOT EXISTS (SELECT FROM " \
	"pg_stat_get_activity(pid)))"

/* The lock's name, and what others are told about us, as literals of SQL. */
static char name[1040], client[820];

/* Nothing of the user's, the database's or the server's settings may end a query before its time.
 * All settings end with the transaction.  COMMIT: synchronous_commit. */
static int begin(struct pglock *lock, const char *commit, int64_t until)
{
	char text[400];

	if (pg_begin(lock, until) != 0)
		return -1;
	pg_literal(lock->options->url.path, name, sizeof name);
	options_holder(lock->options, text, sizeof text);
	for (unsigned char *p = (unsigned char *)text; lock->ascii && *p != '\0'; p++)
		if (*p >= 0x80)
			*p = '?';
	pg_literal(text, client, sizeof client);
	pg_add("SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SET LOCAL search_path TO "
	       "pg_catalog, pg_temp;"
	       " SET LOCAL synchronous_commit TO %s; SET LOCAL statement_timeout TO '5s'; SET "
	       "LOCAL lock_timeout TO '2s';"
	       " SET LOCAL client_min_messages TO warning; %s",
	    commit,
	    PQserverVersion(lock->db) >= 170000 ? "SET LOCAL transaction_timeout TO 0; " : "");
	return 0;
}

/* Clients that decide do so one by one, each with a snapshot that is later than this. */
static void add_queue(void)
{
	pg_add("SELECT pg_advisory_xact_lock(hashtextextended(%s, 7302)); ", name);
}

/* Adds BEFORE and the condition that is true for our row alone. */
static void add_ours(const struct pglock *lock, const char *before)
{
	pg_add("%s name = %s AND id = %" PRId64, before, name, lock->id);
}

/* The rows of others that are in the way of ours, which is p: FROM and WHERE.  A ticket only makes
 * the order. */
static void add_in_the_way(const struct pglock *lock)
{
	pg_add("FROM semlock.place AS o WHERE o.name = %s AND o.id <> %" PRId64
	       " AND (o.token IS NOT NULL OR o.ticket < p.ticket)%s",
	    name, lock->id, lock->options->mode == LEASE_SHARED ? " AND o.mode <> 'shared'" : "");
}

/* The first that waits hears of it at commit; not one whose place has lapsed, which may stand
 * still. */
static void add_wake(const struct pglock *lock)
{
	pg_add("SELECT pg_notify(concat('semlock_', id), '') FROM (SELECT id FROM semlock.place "
	       "WHERE name = %s AND token IS NULL"
	       " AND id <> %" PRId64 " AND until > clock_timestamp() AND NOT " SESSION_ENDED
	       " ORDER BY ticket LIMIT 1) AS next",
	    name, lock->id);
}

/* Adds the INSERT of our row; COLUMNS and VALUES are of those that hold. */
static void add_row(const struct pglock *lock, const char *columns, const char *values)
{
	long long lease = lock->ttl / MILLISECOND;

	pg_add("INSERT INTO semlock.place AS p (name, id, ticket, mode, lease, until, pid, boot, "
	       "client%s) SELECT %s, %" PRId64
	       ", nextval('semlock.token'), '%s', '%lld ms', clock_timestamp() + '%lld ms',"
	       " nullif(pg_backend_pid(), nullif(pg_backend_pid(), %d)), "
	       "pg_postmaster_start_time(), %s%s",
	    columns, name, lock->id, lease_mode_name(lock->options->mode), lease, lease,
	    PQbackendPID(lock->db), client, values);
}

static void add_enter(const struct pglock *lock)
{
	const struct options *options = lock->options;

	pg_add("UPDATE semlock.place AS p SET token = nextval('semlock.token'), until = "
	       "clock_timestamp() + lease, client = %s, slot = ",
	    client);
	if (options->mode == LEASE_SLOTS)
		pg_add("(SELECT min(n) FROM generate_series(0, %u) AS n WHERE NOT EXISTS (SELECT "
		       "FROM semlock.place AS u"
		       " WHERE u.name = %s AND u.token IS NOT NULL AND u.slot = n))",
		    options->slots - 1, name);
	else
		pg_add("NULL");
	add_ours(lock, " WHERE");
	pg_add(" AND token IS NULL AND ");
	if (options->mode == LEASE_SLOTS)
		pg_add("(SELECT count(*) FILTER (WHERE o.token IS NOT NULL) < %u"
		       " AND coalesce(bool_and(o.token IS NOT NULL AND o.mode = 'slots'), true) ",
		    options->slots);
	else
		pg_add("NOT EXISTS (SELECT ");
	add_in_the_way(lock);
	pg_add(")");
}

/* Adds the columns of p that take_entry() reads.  A setting that outlasts the transaction is made
 * only in a session that no pooler shares. */
static void add_entry(const struct pglock *lock)
{
	char waits[64], holds[64], literals[2][128];
	int pid = PQbackendPID(lock->db);

	pg_add(" p.token, p.slot, pg_backend_pid() = %d, "
	       "current_setting('synchronous_standby_names') <> '',"
	       " set_config('idle_session_timeout', '%lld ms', pg_backend_pid() <> %d)",
	    pid, (long long)(2 * lock->ttl / MILLISECOND), pid);
	pg_application(lock, "waits", waits, sizeof waits);
	pg_application(lock, "holds", holds, sizeof holds);
	pg_literal(waits, literals[0], sizeof literals[0]);
	pg_literal(holds, literals[1], sizeof literals[1]);
	if (waits[0] != '\0')
		pg_add(", set_config('application_name', CASE WHEN pg_backend_pid() <> %d THEN "
		       "current_setting('application_name')"
		       " WHEN p.token IS NULL THEN %s ELSE %s END, pg_backend_pid() <> %d)",
		    pid, literals[0], literals[1], pid);
	else
		pg_add(", NULL");
}

/* What the step has come to, in the columns that take_look() reads.  A waiter's commit is not
 * flushed to disk. */
static void add_look(const struct pglock *lock)
{
	pg_add("SELECT");
	add_entry(lock);
	pg_add(", (SELECT count(*) FROM semlock.place WHERE name = %s AND token IS NULL AND ticket "
	       "< p.ticket),"
	       " (SELECT ceil(extract(epoch FROM %s(o.until) - clock_timestamp()) * 1000)::bigint ",
	    name, lock->options->mode == LEASE_SLOTS ? "min" : "max");
	add_in_the_way(lock);
	pg_add("), (SELECT CASE WHEN o.token IS NULL THEN 'note=for the waiters in front' ELSE"
	       " concat('mode=', o.mode, ' slot=' || o.slot, ' ', o.client) END ");
	add_in_the_way(lock);
	pg_add(" ORDER BY o.token IS NULL, o.ticket LIMIT 1),"
	       " set_config('synchronous_commit', CASE WHEN p.token IS NULL THEN 'off' ELSE "
	       "'local' END, true)");
	add_ours(lock, " FROM (SELECT) AS us LEFT JOIN semlock.place AS p ON");
}

enum { ENTRY_COLUMNS = 6, LOOK_COLUMNS = 10 };

/* 1: we have entered, by a query that was sent then. 0: not yet. */
static int take_entry(struct pglock *lock, const PGresult *entry, int64_t sent)
{
	if (PQntuples(entry) != 1 || PQgetisnull(entry, 0, 2))
		return pg_nonsense(lock);
	lock->session.ours = PQgetvalue(entry, 0, 2)[0] == 't';
	lock->standby = PQgetvalue(entry, 0, 3)[0] == 't';
	snprintf(lock->token, sizeof lock->token, "%s", PQgetvalue(entry, 0, 0));
	if (lock->token[0] == '\0')
		return 0;
	lock->slot = PQgetisnull(entry, 0, 1) ? -1 : atoi(PQgetvalue(entry, 0, 1));
	lock->deadline = sent + lock->ttl;
	return 1;
}

static int take_look(struct pglock *lock, const PGresult *look, int64_t sent)
{
	int got = take_entry(lock, look, sent);
	double lapse; /* ms */

	if (got < 0)
		return -1;
	lock->before = atoi(PQgetvalue(look, 0, 6));
	lapse = strtod(PQgetvalue(look, 0, 7), NULL);
	lock->lapses = PQgetisnull(look, 0, 7) || lapse > 1e9
	                   ? NEVER
	                   : clock_boottime() + (lapse < 10 ? 10 : (int64_t)lapse) * MILLISECOND;
	snprintf(lock->who, sizeof lock->who, "%s",
	    PQgetisnull(look, 0, 8) ? "note=for the waiters in front" : PQgetvalue(look, 0, 8));
	return got;
}

/* What a decision begins with, whose answer is waited for until *UNTIL. */
static int begin_step(struct pglock *lock, int64_t *until)
{
	*until = lock->waits ? pg_try_by(lock) : pg_answer_by(lock);
	if (begin(lock, "local", *until) != 0)
		return -1;
	add_queue();
	return 0;
}

/* Sends what was added.  Returns NULL with lock->error filled, or the result, and *sent. */
static PGresult *ask_step(struct pglock *lock, int columns, int64_t until, int64_t *sent)
{
	lock->has_row = true;
	lock->session.heard = false;
	*sent = clock_boottime();
	return pg_ask(lock, columns, until);
}

/* A step in few statements, each of which a new session has to plan, for a lock that nobody else
 * has a row of, not even one whose time has passed, and for a waiter that has heard of its turn. 0:
 * a whole step is needed. */
static int quick_step(struct pglock *lock)
{
	int64_t until, sent;
	PGresult *entry;
	int got;

	if (begin_step(lock, &until) != 0)
		return -1;
	if (lock->has_row) {
		add_enter(lock);
	} else {
		add_row(lock, ", token, slot",
		    lock->options->mode == LEASE_SLOTS ? ", nextval('semlock.token'), 0"
						       : ", nextval('semlock.token'), NULL");
		pg_add(" WHERE NOT EXISTS (SELECT FROM semlock.place WHERE name = %s)", name);
	}
	pg_add(" RETURNING");
	add_entry(lock);
	entry = ask_step(lock, ENTRY_COLUMNS, until, &sent);
	if (entry == NULL)
		return -1;
	got = PQntuples(entry) > 0 ? take_entry(lock, entry, sent) : 0;
	PQclear(entry);
	return got;
}

static int step(struct pglock *lock)
{
	int64_t until, sent;
	bool listens = lock->waits && lock->session.ours;
	PGresult *look;
	int got;

	if (begin_step(lock, &until) != 0)
		return -1;
	pg_add("DELETE FROM semlock.place WHERE name = %s AND id <> %" PRId64
	       " AND until <= clock_timestamp(); ",
	    name, lock->id);
	add_row(lock, "", "");
	pg_add(" ON CONFLICT (name, id) DO UPDATE SET until = clock_timestamp() + excluded.lease, "
	       "pid = excluded.pid, boot = excluded.boot; ");
	add_enter(lock);
	pg_add("; ");
	if (lock->options->no_wait) {
		add_ours(lock, "DELETE FROM semlock.place WHERE");
		pg_add(" AND token IS NULL; ");
	}
	/* A clock that was set back makes no lease longer.  A waiter whose session has ended comes
	 * back soon, or never. */
	if (lock->waits)
		pg_add("UPDATE semlock.place AS o SET until = clock_timestamp() + n.rest FROM "
		       "(SELECT id, CASE WHEN token IS NULL AND " SESSION_ENDED
		       " THEN least(lease, '5 s') ELSE lease END AS rest FROM semlock.place WHERE "
		       "name = %s) AS n"
		       " WHERE o.name = %s AND o.id = n.id AND o.until > clock_timestamp() + "
		       "n.rest + '10 ms'; ",
		    name, name);
	if (lock->options->mode != LEASE_EXCLUSIVE) { /* if we hold, the next perhaps may, too */
		add_wake(lock);
		add_ours(lock, " WHERE EXISTS (SELECT FROM semlock.place WHERE");
		pg_add(" AND token IS NOT NULL); ");
	}
	if (listens && !lock->session.listening)
		pg_add("LISTEN semlock_%" PRId64 "; ", lock->id);
	add_look(lock);
	look = ask_step(lock, LOOK_COLUMNS, until, &sent);
	if (look == NULL)
		return -1;
	lock->session.listening = listens;
	got = take_look(lock, look, sent);
	if (got == 0 && lock->options->no_wait)
		lock->has_row = false;
	PQclear(look);
	return got;
}

static int not_granted(struct pglock *lock, const char *first)
{
	const char *user = PQuser(lock->db);

	return error_plain(&lock->error, ERROR_PERMISSION,
	    "%.60s may not use the table semlock.place: %sGRANT USAGE ON SCHEMA semlock TO %.60s; "
	    "GRANT USAGE ON SEQUENCE"
	    " semlock.token TO %.60s; GRANT SELECT, INSERT, UPDATE, DELETE ON semlock.place TO "
	    "%.60s",
	    user, first, user, user, user);
}

static bool no_table(const struct pglock *lock)
{
	return strcmp(lock->session.state, "42P01") == 0 ||
	       strcmp(lock->session.state, "3F000") == 0;
}

/* The first lock makes the table.  Two sessions that create at once would both fail: one waits for
 * the other.  A page has room for a second version of each row, and until has no index, so a
 * renewal writes one page (HOT). */
static int make_table(struct pglock *lock)
{
	int64_t until = pg_answer_by(lock);

	if (begin(lock, "local", until) != 0)
		return -1;
	pg_add("SELECT pg_advisory_xact_lock(7302); CREATE SCHEMA IF NOT EXISTS semlock;"
	       " CREATE SEQUENCE IF NOT EXISTS semlock.token;"
	       " CREATE TABLE IF NOT EXISTS semlock.place (name text NOT NULL, id bigint NOT NULL, "
	       "ticket bigint NOT NULL,"
	       " token bigint, mode text NOT NULL, slot int, lease interval NOT NULL, until "
	       "timestamptz NOT NULL,"
	       " pid int, boot timestamptz NOT NULL, client text NOT NULL, PRIMARY KEY (name, id)) "
	       "WITH (fillfactor = 50)");
	if (pg_do(lock, 0, until) >= 0)
		return 0;
	return strcmp(lock->session.state, "42501") == 0
	           ? not_granted(lock, "let the owner of the database take this lock once (semlock "
				       "URL true), then ")
	           : -1;
}

int pg_step(struct pglock *lock)
{
	for (;;) {
		bool quick = !lock->has_row ||
		             (lock->session.heard && lock->options->mode == LEASE_EXCLUSIVE);
		int got = quick ? quick_step(lock) : 0;

		if (got == 0)
			got = step(lock);
		if (got >= 0)
			return got;
		if (strcmp(lock->session.state, "42501") == 0 && lock->db != NULL)
			return not_granted(lock, "its owner can ");
		/* The name of a command may be in any encoding, or be cut within a character. */
		if (strncmp(lock->session.state, "22", 2) == 0 && !lock->ascii)
			lock->ascii = true;
		else if (!no_table(lock) || make_table(lock) != 0)
			return -1;
	}
}

int pg_beat(struct pglock *lock)
{
	int64_t until = pg_try_by(lock);
	PGresult *result;

	if (begin(lock, "off", until) != 0)
		return -1;
	/* After a lost connection the session is another. */
	pg_add("UPDATE semlock.place AS p SET until = clock_timestamp() + lease,"
	       " pid = nullif(pg_backend_pid(), nullif(pg_backend_pid(), %d)), boot = "
	       "pg_postmaster_start_time()",
	    PQbackendPID(lock->db));
	add_ours(lock, " WHERE");
	pg_add(" RETURNING (SELECT count(*) FROM semlock.place WHERE name = %s AND token IS NULL "
	       "AND ticket < p.ticket"
	       " AND until > clock_timestamp()), pg_backend_pid() = %d",
	    name, PQbackendPID(lock->db));
	result = pg_ask(lock, 2, until);
	if (result == NULL)
		return -1;
	lock->before = 0;
	if (PQntuples(result) > 0) {
		lock->before = atoi(PQgetvalue(result, 0, 0));
		lock->session.ours = PQgetvalue(result, 0, 1)[0] == 't';
	}
	PQclear(result);
	return 0;
}

int pg_renew(struct pglock *lock, int64_t until)
{
	int64_t sent;
	PGresult *result;
	int rows;

	if (begin(lock, "local", until) != 0)
		return -1;
	pg_add("UPDATE semlock.place SET until = clock_timestamp() + lease, client = "
	       "regexp_replace(client, '^pid=[0-9]+', 'pid=%ld')",
	    options_pid(lock->options));
	add_ours(lock, " WHERE");
	pg_add(" AND token = %s RETURNING current_setting('synchronous_standby_names') <> ''",
	    lock->token);
	sent = clock_boottime();
	result = pg_ask(lock, 1, until);
	if (result == NULL)
		return -1;
	rows = PQntuples(result);
	/* After a failover it may be another server. */
	lock->standby = rows > 0 && PQgetvalue(result, 0, 0)[0] == 't';
	PQclear(result);
	if (rows > 0 && pg_confirm(lock, until) != 0)
		return -1;
	if (rows > 0)
		lock->deadline = sent + lock->ttl;
	return rows > 0;
}

/* A commit waits for the standby if its transaction has written something. */
int pg_confirm(struct pglock *lock, int64_t until)
{
	char why[sizeof lock->error.text];

	if (!lock->standby)
		return 0;
	if (begin(lock, "on", until) != 0)
		return -1;
	pg_add("SELECT pg_logical_emit_message(true, 'semlock', '')");
	if (pg_do(lock, 1, until) >= 0)
		return 0;
	memcpy(why, lock->error.text, sizeof why);
	return error_plain(&lock->error, lock->error.kind,
	    "the standby has not confirmed it: %.300s", why);
}

/* The commit is not flushed to disk: if the server forgets it in a crash, the row lapses. */
int pg_remove(struct pglock *lock, int64_t until)
{
	bool woken = lock->waits;
	PGresult *result;
	int rows;

	if (begin(lock, "off", until) != 0)
		return -1;
	add_queue();
	/* A client that has waited mostly has others behind it.  One that has not waited mostly has
	 * none: it wakes in a query of its own, and only if there is one, because a new session
	 * plans each query anew. */
	if (woken) {
		add_wake(lock);
		pg_add("; ");
	}
	add_ours(lock, "DELETE FROM semlock.place WHERE");
	pg_add(" RETURNING EXISTS (SELECT FROM semlock.place WHERE name = %s AND token IS NULL AND "
	       "id <> %" PRId64 ")",
	    name, lock->id);
	result = pg_ask(lock, 1, until);
	if (result == NULL)
		return -1;
	rows = PQntuples(result);
	/* there is none to wake */
	woken = woken || (rows > 0 && PQgetvalue(result, 0, 0)[0] == 'f');
	PQclear(result);
	/* If we end before this, the next one enters at its next sign of life. */
	if (!woken && begin(lock, "off", until) == 0) {
		add_wake(lock);
		pg_do(lock, 1, until);
	}
	return rows;
}

enum engine_outcome pg_who(struct pglock *lock)
{
	PGresult *result;
	int rows;

	if (begin(lock, "off", pg_answer_by(lock)) != 0)
		return ENGINE_FAILED;
	pg_add("SELECT CASE WHEN token IS NULL THEN 'waits' ELSE 'holds' END || ' mode=' || mode "
	       "|| coalesce(' slot=' || slot, '')"
	       " || ' ' || client FROM semlock.place WHERE name = %s AND until > clock_timestamp() "
	       "ORDER BY token IS NULL, ticket",
	    name);
	result = pg_ask(lock, 1, pg_answer_by(lock));
	/* Without the table no lock was ever taken. */
	if (result == NULL)
		return no_table(lock) ? ENGINE_RELEASED : ENGINE_FAILED;
	rows = PQntuples(result);
	for (int i = 0; i < rows; i++)
		say(SAYS_WHO " " FIELD_STATE "%s", PQgetvalue(result, i, 0));
	PQclear(result);
	return rows > 0 ? ENGINE_BUSY : ENGINE_RELEASED;
}
