/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <string.h>

#include "locksmith/postgresql/query.h"
#include "locksmith/postgresql/schema.h"
#include "locksmith/postgresql/session.h"

/* Take an advisory lock first: if two sessions created the table at once, one would fail.  Tokens
 * begin at the present time in seconds, so they also rise after the schema was dropped.  The
 * fillfactor leaves room in a page for a second version of each row, and the column "until" has no
 * index, so a renewal writes one page (HOT).  In the column "version", each client writes the
 * version of the table that it knows; the table accepts no other than its own. */
static const char make_table[] = "SELECT pg_advisory_xact_lock(7302);"
				 " CREATE SCHEMA IF NOT EXISTS semlock;"
				 " CREATE SEQUENCE IF NOT EXISTS semlock.token;"
				 " SELECT setval('semlock.token',"
				 "   extract(epoch FROM clock_timestamp())::bigint)"
				 "  FROM semlock.token WHERE NOT is_called;"
				 " CREATE TABLE IF NOT EXISTS semlock.place ("
				 "  name text NOT NULL,"
				 "  id bigint NOT NULL,"
				 "  ticket bigint NOT NULL,"
				 "  token bigint,"
				 "  mode text NOT NULL,"
				 "  slot int,"
				 "  lease interval NOT NULL,"
				 "  until timestamptz NOT NULL,"
				 "  pid int,"
				 "  boot timestamptz NOT NULL,"
				 "  client text NOT NULL,"
				 "  version int NOT NULL DEFAULT 1 CHECK (version = 1),"
				 "  PRIMARY KEY (name, id)"
				 " ) WITH (fillfactor = 50)";

/* Returns why the missing table must not be made: there was an earlier one, in which somebody may
 * hold a lock.  make_table makes the sequence and the table in one transaction, so if only the
 * sequence exists, the table was removed.  Returns NULL if there is no sign of an earlier table, or
 * if the table exists. */
static const char find_remains[] =
    "WITH t AS (SELECT n.nspname, c.relname, c.relkind, c.oid"
    "   FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
    "   WHERE c.relname IN ('place', 'token'))"
    " SELECT CASE"
    "  WHEN EXISTS (SELECT FROM t WHERE nspname = 'semlock' AND relname = 'place') THEN NULL"
    "  WHEN EXISTS (SELECT FROM t WHERE nspname = 'semlock' AND relname = 'token')"
    "   THEN 'if it was renamed, rename it back; if it was dropped,"
    " DROP SCHEMA semlock CASCADE while no lock is held'"
    "  ELSE coalesce("
    "   (SELECT 'the schema ' || quote_ident(p.nspname) || ' looks like it,"
    " rename it back, or drop it while no lock is held'"
    "    FROM t AS p JOIN t AS s ON s.nspname = p.nspname AND s.relkind = 'S'"
    "    WHERE p.relkind = 'r' AND 6 = (SELECT count(*) FROM pg_attribute"
    "     WHERE attrelid = p.oid AND NOT attisdropped"
    "      AND attname IN ('ticket', 'token', 'lease', 'until', 'boot', 'client'))"
    "    LIMIT 1),"
    "   (SELECT 'a session still holds a lock (' || application_name || ')'"
    "    FROM pg_stat_activity"
    "    WHERE datname = current_database() AND application_name LIKE 'semlock % holds'"
    "    LIMIT 1))"
    " END";

/* The version of semlock's table that this program knows. */
static const char our_version[] = "1";

/* Ask the catalogue, which every role may read, whether row security hides rows from us, and which
 * version the table has. */
static const char describe_table[] =
    "SELECT row_security_active(c.oid), coalesce(pg_get_expr(d.adbin, d.adrelid), '0')"
    " FROM pg_namespace AS n JOIN pg_class AS c ON c.relnamespace = n.oid"
    "  LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'version'"
    "  LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum"
    " WHERE n.nspname = 'semlock' AND c.relname = 'place'";

enum { TABLE_HIDES_ROWS, TABLE_VERSION, TABLE_COLUMNS };

bool schema_is_missing(const struct pg_lock *lock)
{
	return session_failed_by(lock, "42P01") || session_failed_by(lock, "3F000");
}

static int not_granted(struct pg_lock *lock, const char *first)
{
	const char *user = PQuser(lock->db);

	return error_plain(&lock->error, ERROR_PERMISSION,
	    "%.60s may not use the table semlock.place: %sGRANT USAGE ON SCHEMA semlock TO %.60s; "
	    "GRANT USAGE ON SEQUENCE semlock.token TO %.60s; "
	    "GRANT SELECT, INSERT, UPDATE, DELETE ON semlock.place TO %.60s",
	    user, first, user, user, user);
}

/* Ask once whether there is a reason not to make the table.  Returns 0: there is none; 1:
 * lock->error has the reason; or -1 with lock->error filled: no answer. */
static int ask_for_remains(struct pg_lock *lock, int64_t until)
{
	PGresult *result;
	bool removed;

	if (session_begin(lock, "off", until) != 0)
		return -1;
	query_add(lock, find_remains);
	result = session_ask(lock, 1, until);
	if (result == NULL)
		return -1;
	removed = PQntuples(result) == 1 && !PQgetisnull(result, 0, 0);
	if (removed)
		error_plain(&lock->error, ERROR_UNAVAILABLE,
		    "the table semlock.place has been removed after locks were taken: %.300s",
		    PQgetvalue(result, 0, 0));
	PQclear(result);
	return removed;
}

int schema_was_removed(struct pg_lock *lock)
{
	int64_t until = session_answer_by(lock);
	int removed = ask_for_remains(lock, until);

	/* While the query looks, another client may make the table and take its lock, which then
	 * looks like a sign of an earlier table.  A second query sees the table. */
	return removed == 1 ? ask_for_remains(lock, until) : removed;
}

int schema_make(struct pg_lock *lock)
{
	int64_t until = session_answer_by(lock);

	if (lock->row == PG_ROW_QUEUED)
		return error_plain(&lock->error, ERROR_UNAVAILABLE,
		    "the table semlock.place has been removed, and this place in the queue with "
		    "it");
	if (schema_was_removed(lock) != 0)
		return -1;
	if (session_begin(lock, "local", until) != 0)
		return -1;
	query_add(lock, make_table);
	if (session_do(lock, 0, until) >= 0)
		return 0;
	if (!session_failed_by(lock, "42501") || lock->db == NULL)
		return -1;
	return not_granted(lock,
	    "let the owner of the database take this lock once (semlock URL true), then ");
}

bool schema_is_refused(const struct pg_lock *lock)
{
	/* no permission; a missing column; a NULL that the table refuses; a value that it refuses;
	 * no index for ON CONFLICT */
	static const char *const refusals[] = {"42501", "42703", "23502", "23514", "42P10"};

	for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
		if (session_failed_by(lock, refusals[i]))
			return lock->db != NULL;
	return false;
}

/* Fill lock->error from what the server says about the table. */
static void explain_by(struct pg_lock *lock, const PGresult *table)
{
	const char *version = PQgetvalue(table, 0, TABLE_VERSION);

	if (PQgetvalue(table, 0, TABLE_HIDES_ROWS)[0] == 't')
		error_plain(&lock->error, ERROR_PERMISSION,
		    "row security would hide the rows of other roles from %.60s: "
		    "ALTER TABLE semlock.place DISABLE ROW LEVEL SECURITY",
		    PQuser(lock->db));
	else if (strcmp(version, our_version) != 0)
		error_plain(&lock->error, ERROR_UNAVAILABLE,
		    "the table semlock.place is of another version of semlock (%.20s; this one "
		    "knows %s): use one version on all machines, and DROP SCHEMA semlock CASCADE "
		    "while no lock is held",
		    version, our_version);
}

int schema_explain_refusal(struct pg_lock *lock)
{
	struct error refusal = lock->error;
	bool no_right = session_failed_by(lock, "42501");
	int64_t until = session_answer_by(lock);
	PGresult *table = NULL;

	if (session_begin(lock, "off", until) == 0) {
		query_add(lock, describe_table);
		table = session_ask(lock, TABLE_COLUMNS, until);
	}
	lock->error = refusal;
	if (no_right && lock->db != NULL)
		not_granted(lock, "its owner can ");
	if (table != NULL && PQntuples(table) == 1)
		explain_by(lock, table);
	PQclear(table);
	return -1;
}
