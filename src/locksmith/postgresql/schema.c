/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/postgresql/query.h"
#include "locksmith/postgresql/schema.h"
#include "locksmith/postgresql/session.h"

/* Two sessions that create at once would both fail: one waits for the other.  A page has room for a
 * second version of each row, and until has no index, so a renewal writes one page (HOT). */
static const char make_table[] = "SELECT pg_advisory_xact_lock(7302);"
				 " CREATE SCHEMA IF NOT EXISTS semlock;"
				 " CREATE SEQUENCE IF NOT EXISTS semlock.token;"
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
				 "  PRIMARY KEY (name, id)"
				 " ) WITH (fillfactor = 50)";

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

int schema_make(struct pg_lock *lock)
{
	int64_t until = session_answer_by(lock);

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

int schema_explain_refusal(struct pg_lock *lock)
{
	return lock->db != NULL ? not_granted(lock, "its owner can ") : -1;
}
