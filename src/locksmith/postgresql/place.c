/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/postgresql/place.h"
#include "locksmith/postgresql/query.h"
#include "locksmith/postgresql/schema.h"
#include "locksmith/postgresql/session.h"

/* ---- the statements; query.h explains :name and the other variables ---- */

/* Take the advisory lock for the name, so that clients decide one by one.  The statements after
 * this one see what all earlier clients have committed. */
static const char one_by_one[] = "SELECT pg_advisory_xact_lock(hashtextextended(:name, 7302))";

/* True if a row's session has ended, and the server was not restarted since.  The row's client has
 * gone, or will be back in a moment.  (If another session has the PID by now, the row lapses as
 * usual.) */
#define SESSION_ENDED \
	"(pid IS NOT NULL AND boot = pg_postmaster_start_time()" \
	" AND NOT EXISTS (SELECT FROM pg_stat_get_activity(pid)))"

/* The moment when a row's time is over.  A server that was away has accepted no signs of life, so a
 * place from before the server's start lasts at least a lease from that start on. */
#define ENDS \
	"(CASE WHEN token IS NULL AND boot <> pg_postmaster_start_time()" \
	"  THEN greatest(until, pg_postmaster_start_time() + lease) ELSE until END)"

/* Does a row count?  It does if it holds, or if its time is not over. */
#define COUNTS "(token IS NOT NULL OR " ENDS " > clock_timestamp())"

/* The rows in the way of our row, p: every row that holds, whatever its ticket, and every place
 * that came earlier.  (The ticket only makes the order.)  Shared rows are not in the way of a
 * shared row. */
#define ROWS_IN_THE_WAY \
	" FROM semlock.place" \
	" WHERE name = :name AND id <> :id AND (token IS NOT NULL OR ticket < p.ticket)" \
	"  AND NOT (:mode = 'shared' AND mode = 'shared') AND " COUNTS

/* What take_entry() reads of our row, p.  It also makes settings that outlast the transaction, but
 * only in a session that no pooler shares. */
#define ENTRY \
	" p.token," \
	" p.slot," \
	" pg_backend_pid() = :backend," \
	" current_setting('synchronous_standby_names') <> ''," \
	" CASE WHEN pg_backend_pid() = :backend" \
	"  THEN set_config('idle_session_timeout', :idle, false) END," \
	" CASE WHEN pg_backend_pid() = :backend AND :waits IS NOT NULL" \
	"  THEN set_config('application_name'," \
	"   CASE WHEN p.token IS NULL THEN :waits ELSE :holds END, false) END"

enum { ENTRY_COLUMNS = 6 };

/* Take a lock that has no row, not even one whose time is over.  This is a single statement,
 * because a new session must plan each statement.  If the role lacks the permission to renew or to
 * remove rows, this takes nothing; then whole_step() fails, and reports that. */
static const char enter_alone[] =
    "INSERT INTO semlock.place AS p (name, id, ticket, token, mode, slot, lease, until,"
    "  pid, boot, client, version)"
    " SELECT :name, :id, nextval('semlock.token'), nextval('semlock.token'), :mode,"
    "  CASE WHEN :mode = 'slots' THEN 0 END, :lease, clock_timestamp() + :lease,"
    "  CASE pg_backend_pid() WHEN :backend THEN :seat END, pg_postmaster_start_time(), :client,"
    "  1"
    " WHERE NOT EXISTS (SELECT FROM semlock.place WHERE name = :name)"
    "  AND has_table_privilege('semlock.place', 'UPDATE')"
    "  AND has_table_privilege('semlock.place', 'DELETE')"
    " RETURNING" ENTRY;

/* Remove rows whose time is over.  A place is kept for a minute longer, though it blocks nobody:
 * its client may only be slow, or have found no session on a full server. */
static const char remove_lapsed[] =
    "DELETE FROM semlock.place"
    " WHERE name = :name AND id <> :id"
    "  AND CASE WHEN token IS NULL THEN " ENDS " + '1 min' ELSE until END"
    "   <= clock_timestamp()";

/* Make our row, or renew it.  If the row holds already, by a step whose answer was lost, it keeps
 * the lease of a lock. */
static const char stand_in_line[] =
    "INSERT INTO semlock.place AS p (name, id, ticket, mode, lease, until, pid, boot, client,"
    "  version)"
    " VALUES (:name, :id, nextval('semlock.token'), :mode, :placelease,"
    "  clock_timestamp() + :placelease,"
    "  CASE pg_backend_pid() WHEN :backend THEN :seat END, pg_postmaster_start_time(), :client,"
    "  1)"
    " ON CONFLICT (name, id) DO UPDATE"
    "  SET until = clock_timestamp() + p.lease, pid = excluded.pid, boot = excluded.boot";

/* Enter if nothing is in the way.  Slot holders do not block a client that wants a slot, as long as
 * they are fewer than the slots. */
static const char enter[] =
    "UPDATE semlock.place AS p"
    " SET token = nextval('semlock.token'), lease = :lease, until = clock_timestamp() + :lease,"
    "  client = :client,"
    "  slot = CASE WHEN :mode = 'slots' THEN ("
    "   SELECT min(n) FROM generate_series(0, :slots - 1) AS n"
    "   WHERE NOT EXISTS (SELECT FROM semlock.place AS u"
    "    WHERE u.name = :name AND u.token IS NOT NULL AND u.slot = n)) END"
    " WHERE name = :name AND id = :id AND token IS NULL AND ("
    "  SELECT CASE WHEN :mode = 'slots'"
    "   THEN count(token) < :slots"
    "    AND coalesce(bool_and(token IS NOT NULL AND mode = 'slots'), true)"
    "   ELSE count(*) = 0 END" ROWS_IN_THE_WAY ")";

/* Follows "enter" for a waiter that has heard of its turn. */
static const char returning_entry[] = " RETURNING" ENTRY;

static const char leave_unless_entered[] =
    "DELETE FROM semlock.place WHERE name = :name AND id = :id AND token IS NULL";

/* If the server's clock was set back, shorten each row's time to its lease.  For a waiter whose
 * session has ended, shorten it to five seconds: such a waiter comes back soon, or never. */
static const char shorten[] =
    "UPDATE semlock.place AS o SET until = clock_timestamp() + n.rest"
    " FROM (SELECT id,"
    "   CASE WHEN token IS NULL AND " SESSION_ENDED
    " THEN least(lease, '5 s') ELSE lease END AS rest"
    "  FROM semlock.place WHERE name = :name) AS n"
    " WHERE o.name = :name AND o.id = n.id AND o.until > clock_timestamp() + n.rest + '10 ms'";

/* Notify the first waiter, at commit.  But pass over a waiter whose place has lapsed, which may be
 * stopped, or whose session has ended. */
#define WAKE_FIRST \
	"SELECT pg_notify('semlock_' || id, '') FROM (" \
	"  SELECT id FROM semlock.place" \
	"  WHERE name = :name AND token IS NULL AND id <> :id AND " COUNTS \
	"   AND NOT " SESSION_ENDED "  ORDER BY ticket LIMIT 1) AS first"

static const char wake_first[] = WAKE_FIRST;

/* The same, but only if we have entered: after a shared holder or a slot holder, the next waiter
 * may be able to enter, too. */
static const char wake_first_if_entered[] =
    WAKE_FIRST " WHERE EXISTS (SELECT FROM semlock.place"
	       "  WHERE name = :name AND id = :id AND token IS NOT NULL)";

static const char listen[] = "LISTEN :channel";

/* The percentage of sessions that are free.  The server, the role and the database each allow a
 * number of sessions; this is the lowest of the three percentages. */
#define ROOM \
	" (SELECT least(" \
	"   100 - 100 * used.by_all / (current_setting('max_connections')::int" \
	"    - current_setting('superuser_reserved_connections')::int" \
	"    - coalesce(current_setting('reserved_connections', true)::int, 0))," \
	"   CASE WHEN role.rolconnlimit > 0" \
	"    THEN 100 - 100 * used.by_role / role.rolconnlimit END," \
	"   CASE WHEN database.datconnlimit > 0" \
	"    THEN 100 - 100 * used.in_database / database.datconnlimit END)" \
	"  FROM pg_roles AS role, pg_database AS database, LATERAL (" \
	"   SELECT count(*) AS by_all, count(*) FILTER (WHERE usesysid = role.oid) AS by_role," \
	"    count(*) FILTER (WHERE datid = database.oid) AS in_database" \
	"   FROM pg_stat_get_activity(NULL) WHERE datid IS NOT NULL) AS used" \
	"  WHERE role.rolname = session_user AND database.datname = current_database())"

/* The result of the step, which take_look() reads; it has a row even if our row is gone.  The
 * commit of a waiter's step need not be flushed to disk. */
static const char look[] =
    "WITH p AS ("
    "  SELECT mine.* FROM (SELECT) AS us LEFT JOIN semlock.place AS mine"
    "  ON mine.name = :name AND mine.id = :id),"
    " in_the_way AS (SELECT o.* FROM p, LATERAL (SELECT *" ROWS_IN_THE_WAY ") AS o)"
    " SELECT" ENTRY ","
    "  (SELECT count(*) FROM semlock.place"
    "   WHERE name = :name AND token IS NULL AND ticket < p.ticket AND " COUNTS "),"
    "  (SELECT ceil(extract(epoch FROM"
    "    CASE WHEN :mode = 'slots' THEN min(" ENDS ") ELSE max(" ENDS ") END"
    "    - clock_timestamp()) * 1000)::bigint FROM in_the_way),"
    "  (SELECT CASE WHEN token IS NULL THEN 'note=for the waiters in front'"
    "    ELSE concat('mode=', mode, ' slot=' || slot, ' ', client) END"
    "   FROM in_the_way ORDER BY token IS NULL, ticket LIMIT 1),"
    "  set_config('synchronous_commit',"
    "   CASE WHEN p.token IS NULL THEN 'off' ELSE 'local' END, true),"
    "  CASE WHEN :queued THEN" ROOM " END"
    " FROM p";

enum { LOOK_BEFORE = ENTRY_COLUMNS, LOOK_LAPSE, LOOK_WHO, LOOK_COMMIT, LOOK_ROOM, LOOK_COLUMNS };

/* write pid again: after a lost connection, the session is another one */
static const char beat[] = "UPDATE semlock.place AS p"
			   " SET until = clock_timestamp() + lease,"
			   "  pid = CASE pg_backend_pid() WHEN :backend THEN :seat END,"
			   "  boot = pg_postmaster_start_time()"
			   " WHERE name = :name AND id = :id"
			   " RETURNING (SELECT count(*) FROM semlock.place WHERE name = :name"
			   "  AND token IS NULL AND ticket < p.ticket AND " COUNTS "),"
			   "  pg_backend_pid() = :backend," ROOM;

enum { BEAT_BEFORE, BEAT_OURS, BEAT_ROOM, BEAT_COLUMNS };

/* from START on, others see the command's PID */
static const char renew[] = "UPDATE semlock.place"
			    " SET until = clock_timestamp() + lease,"
			    "  client = regexp_replace(client, '^pid=[0-9]+', 'pid=:command')"
			    " WHERE name = :name AND id = :id AND token = :token"
			    " RETURNING current_setting('synchronous_standby_names') <> ''";

/* A commit waits for the standby only if its transaction has written something. */
static const char write_nothing[] = "SELECT pg_logical_emit_message(true, 'semlock', '')";

static const char leave[] = "DELETE FROM semlock.place WHERE name = :name AND id = :id"
			    " RETURNING EXISTS (SELECT FROM semlock.place"
			    "  WHERE name = :name AND token IS NULL AND id <> :id)";

static const char list[] =
    "SELECT CASE WHEN token IS NULL THEN 'waits' ELSE 'holds' END || ' mode=' || mode"
    "  || coalesce(' slot=' || slot, '') || ' ' || client"
    " FROM semlock.place WHERE name = :name AND " ENDS " > clock_timestamp()"
    " ORDER BY token IS NULL, ticket";

/* ---- reading the answers ---- */

static bool is_true(const PGresult *result, int column)
{
	return PQgetvalue(result, 0, column)[0] == 't';
}

/* Returns 1 if the query that was sent at SENT has made us enter; 0 if not; or -1 with lock->error
 * filled: the answer is invalid. */
static int take_entry(struct pg_lock *lock, const PGresult *entry, int64_t sent)
{
	if (PQntuples(entry) != 1 || PQgetisnull(entry, 0, 2))
		return session_nonsense(lock);
	lock->session.ours = is_true(entry, 2);
	lock->has_standby = is_true(entry, 3);
	snprintf(lock->token, sizeof lock->token, "%s", PQgetvalue(entry, 0, 0));
	lock->deadline = sent + (lock->token[0] == '\0' ? lock->place_ttl : lock->ttl);
	if (lock->token[0] == '\0')
		return 0;
	lock->slot = PQgetisnull(entry, 0, 1) ? -1 : atoi(PQgetvalue(entry, 0, 1));
	return 1;
}

/* Return the moment at which a row lapses, which the server says is in MS ms. */
static int64_t lapses_in(double ms)
{
	if (ms > 1e9)
		return NEVER;
	return clock_boottime() + (ms < 10 ? 10 : (int64_t)ms) * MILLISECOND;
}

static void take_room(struct pg_lock *lock, const PGresult *result, int column)
{
	lock->room = PQgetisnull(result, 0, column) ? 100 : atoi(PQgetvalue(result, 0, column));
}

static int take_look(struct pg_lock *lock, const PGresult *result, int64_t sent)
{
	int entered = take_entry(lock, result, sent);
	const char *who = "note=for the waiters in front";

	if (entered < 0)
		return -1;
	lock->before = atoi(PQgetvalue(result, 0, LOOK_BEFORE));
	lock->lapses = NEVER;
	if (!PQgetisnull(result, 0, LOOK_LAPSE))
		lock->lapses = lapses_in(strtod(PQgetvalue(result, 0, LOOK_LAPSE), NULL));
	take_room(lock, result, LOOK_ROOM);
	if (!PQgetisnull(result, 0, LOOK_WHO))
		who = PQgetvalue(result, 0, LOOK_WHO);
	snprintf(lock->who, sizeof lock->who, "%s", who);
	return entered;
}

/* ---- the steps ---- */

/* Begin the query of a step, whose answer must come by *UNTIL. */
static int begin_step(struct pg_lock *lock, int64_t *until)
{
	*until = lock->row == PG_ROW_QUEUED ? session_try_by(lock) : session_answer_by(lock);
	if (session_begin(lock, "local", *until) != 0)
		return -1;
	query_add(lock, one_by_one);
	return 0;
}

/* Send the query of a step, and set *SENT to when.  Returns its result, or NULL with lock->error
 * filled. */
static PGresult *ask_step(struct pg_lock *lock, int columns, int64_t until, int64_t *sent)
{
	if (lock->row == PG_NO_ROW)
		lock->row = PG_ROW_ASKED;
	lock->session.heard = false;
	*sent = clock_boottime();
	return session_ask(lock, columns, until);
}

/* A step of few statements: for a lock that has no other client's row, and for a waiter that has
 * heard of its turn.  Returns 1 if we have entered; 0 if a whole step is needed; or -1. */
static int quick_step(struct pg_lock *lock)
{
	int64_t until, sent;
	PGresult *entry;
	int entered = 0;

	if (begin_step(lock, &until) != 0)
		return -1;
	if (lock->row == PG_NO_ROW) {
		query_add(lock, enter_alone);
	} else {
		query_add(lock, enter);
		query_extend(lock, returning_entry);
	}
	entry = ask_step(lock, ENTRY_COLUMNS, until, &sent);
	if (entry == NULL)
		return -1;
	if (PQntuples(entry) > 0)
		entered = take_entry(lock, entry, sent);
	PQclear(entry);
	return entered;
}

static int whole_step(struct pg_lock *lock)
{
	int64_t until, sent;
	bool queued = lock->row == PG_ROW_QUEUED;
	bool listens = queued && lock->session.ours && lock->presence == PG_STAYS;
	PGresult *result;
	int entered;

	if (begin_step(lock, &until) != 0)
		return -1;
	query_add(lock, remove_lapsed);
	query_add(lock, stand_in_line);
	query_add(lock, enter);
	if (lock->options->no_wait)
		query_add(lock, leave_unless_entered);
	if (queued)
		query_add(lock, shorten);
	if (lock->options->mode != LEASE_EXCLUSIVE)
		query_add(lock, wake_first_if_entered);
	if (listens && !lock->session.listening)
		query_add(lock, listen);
	query_add(lock, look);
	result = ask_step(lock, LOOK_COLUMNS, until, &sent);
	if (result == NULL)
		return -1;
	lock->session.listening = listens;
	entered = take_look(lock, result, sent);
	if (entered == 0 && lock->options->no_wait)
		lock->row = PG_NO_ROW;
	PQclear(result);
	return entered;
}

/* The database's encoding may lack a character of the command's name, or of the lock's. */
static bool is_encoding_refused(const struct pg_lock *lock)
{
	return session_failed_by(lock, "22021") || session_failed_by(lock, "22P05");
}

static int refuse_name(struct pg_lock *lock)
{
	struct error error = lock->error;

	return error_plain(&lock->error, ERROR_USAGE,
	    "the database cannot hold the lock's name: %.300s", error.text);
}

int place_step(struct pg_lock *lock)
{
	for (;;) {
		bool quick = lock->row == PG_NO_ROW ||
		             (lock->session.heard && lock->options->mode == LEASE_EXCLUSIVE);
		int entered = quick ? quick_step(lock) : 0;

		if (entered == 0)
			entered = whole_step(lock);
		if (entered >= 0)
			return entered;
		if (schema_is_refused(lock))
			return schema_explain_refusal(lock);
		if (is_encoding_refused(lock)) {
			if (lock->ascii_client)
				return refuse_name(lock);
			lock->ascii_client = true;
		} else if (!schema_is_missing(lock) || schema_make(lock) != 0) {
			return -1;
		}
	}
}

int place_beat(struct pg_lock *lock)
{
	int64_t until = session_try_by(lock), sent;
	PGresult *result;

	if (session_begin(lock, "off", until) != 0)
		return -1;
	query_add(lock, beat);
	sent = clock_boottime();
	result = session_ask(lock, BEAT_COLUMNS, until);
	if (result == NULL)
		return -1;
	lock->before = 0;
	if (PQntuples(result) > 0) {
		lock->deadline = sent + lock->place_ttl;
		lock->before = atoi(PQgetvalue(result, 0, BEAT_BEFORE));
		lock->session.ours = is_true(result, BEAT_OURS);
		take_room(lock, result, BEAT_ROOM);
	}
	PQclear(result);
	return 0;
}

int place_renew(struct pg_lock *lock, int64_t until)
{
	int64_t sent;
	PGresult *result;
	bool renewed;

	if (session_begin(lock, "local", until) != 0)
		return -1;
	query_add(lock, renew);
	sent = clock_boottime();
	result = session_ask(lock, 1, until);
	if (result == NULL)
		return -1;
	renewed = PQntuples(result) > 0;
	/* after a failover, this may be another server */
	lock->has_standby = renewed && is_true(result, 0);
	PQclear(result);
	if (!renewed)
		return 0;
	if (place_confirm(lock, until) != 0)
		return -1;
	lock->deadline = sent + lock->ttl;
	return 1;
}

int place_confirm(struct pg_lock *lock, int64_t until)
{
	struct error error;

	if (!lock->has_standby)
		return 0;
	if (session_begin(lock, "on", until) != 0)
		return -1;
	query_add(lock, write_nothing);
	if (session_do(lock, 1, until) >= 0)
		return 0;
	error = lock->error;
	return error_plain(&lock->error, error.kind, "the standby has not confirmed it: %.300s",
	    error.text);
}

/* The commit is not flushed to disk: if a crash of the server undoes it, our row lapses by
 * itself. */
int place_remove(struct pg_lock *lock, int64_t until)
{
	bool woken = lock->row == PG_ROW_QUEUED;
	PGresult *result;
	int rows;

	if (session_begin(lock, "off", until) != 0)
		return -1;
	query_add(lock, one_by_one);
	/* If we have waited, others usually wait behind us: wake the first of them in the same
	 * query.  If we have not, usually nobody waits, and a new session must plan each statement:
	 * so wake in a second query, and only if "leave" has found a waiter. */
	if (woken)
		query_add(lock, wake_first);
	query_add(lock, leave);
	result = session_ask(lock, 1, until);
	if (result == NULL)
		return -1;
	rows = PQntuples(result);
	if (rows > 0 && !is_true(result, 0))
		woken = true; /* nobody waits */
	PQclear(result);
	/* if we end before this query, the next waiter enters at its next sign of life */
	if (!woken && session_begin(lock, "off", until) == 0) {
		query_add(lock, wake_first);
		session_do(lock, 1, until);
	}
	return rows;
}

enum look place_who(struct pg_lock *lock)
{
	PGresult *result;
	int rows;

	if (session_begin(lock, "off", session_answer_by(lock)) != 0)
		return LOOK_FAILED;
	query_add(lock, list);
	result = session_ask(lock, 1, session_answer_by(lock));
	/* Without the table no lock was ever taken, unless the table was removed. */
	if (result == NULL && schema_is_missing(lock))
		return schema_was_removed(lock) == 0 ? LOOK_FREE : LOOK_FAILED;
	if (result == NULL && schema_is_refused(lock))
		schema_explain_refusal(lock);
	if (result == NULL)
		return LOOK_FAILED;
	rows = PQntuples(result);
	for (int i = 0; i < rows; i++)
		say(SAYS_WHO " " FIELD_STATE "%s", PQgetvalue(result, i, 0));
	PQclear(result);
	return rows > 0 ? LOOK_BUSY : LOOK_FREE;
}
