#include <config.h>

#include "locksmith/common/clock.h"
#include "locksmith/common/protocol.h"
#include "locksmith/postgresql/pglock.h"

#include <stdio.h>
#include <string.h>

/* A waiter is a session that waits for the advisory lock, or has it while another's row is there. */
static const char who[] =
    "SELECT 'holds mode=' || mode || coalesce(' slot=' || slot, '') || ' ' || holder FROM"
    " (SELECT * FROM semlock.held WHERE name = $1 AND until > clock_timestamp() ORDER BY token) AS holders"
    " UNION ALL SELECT 'waits ' || coalesce(substr(waiter, 9), 'note=a session of another role') FROM"
    " (SELECT a.application_name AS waiter FROM pg_locks l LEFT JOIN pg_stat_activity a USING (pid)"
    "  WHERE l.locktype = 'advisory' AND l.objsubid = 1"
    "  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    "  AND l.classid::bigint << 32 | l.objid::bigint = $2::bigint"
    "  AND (NOT l.granted OR EXISTS (SELECT FROM semlock.held WHERE name = $1 AND until > clock_timestamp()))"
    "  ORDER BY l.granted DESC, l.waitstart) AS waiters";

int pg_who(struct pglock *k)
{
	PGresult *r = PG_ASK(k, pg_answer_by(k), who, k->name, k->key);
	int rows;

	/* Without the table no lock was ever taken. */
	if (r == NULL)
		return pg_no_table(k) ? EXIT_RELEASED : k->failure.status;
	rows = PQntuples(r);
	for (int i = 0; i < rows; i++)
		say("WHO state=%s", PQgetvalue(r, i, 0));
	PQclear(r);
	return rows > 0 ? EXIT_BUSY : EXIT_RELEASED;
}

static bool expect(struct pglock *k, const char *what, int outcome, int wanted)
{
	if (outcome == wanted)
		say("CHECK ok %s", what);
	else
		say("CHECK no %s: %s", what, outcome < 0 ? k->failure.text : "unexpected result");
	return outcome == wanted;
}

/* What the settings of the server mean for a lock. */
static void notes(struct pglock *k)
{
	PGresult *r = pg_ask(k, pg_answer_by(k),
	    "SELECT current_setting('server_version'), current_setting('fsync'),"
	    " current_setting('synchronous_standby_names')", 0, NULL);

	if (r == NULL)
		return;
	say("CHECK note PostgreSQL %s", PQgetvalue(r, 0, 0));
	if (strcmp(PQgetvalue(r, 0, 1), "on") != 0)
		say("CHECK note fsync is off: after a crash of the machine the server may forget who holds the lock");
	if (PQgetvalue(r, 0, 2)[0] == '\0')
		say("CHECK note no standby is synchronous: after a failover to a standby two may hold the lock, for a "
		    "lease");
	PQclear(r);
}

/* Tries it all out on a name of its own, in two sessions. */
int pg_check(struct pglock *k)
{
	size_t length = strlen(k->name);
	struct pglock other;
	bool fit;

	snprintf(k->name + length, sizeof k->name - length, "#check-%lld", (long long)clock_boottime());
	other = *k;
	other.db = NULL;
	if (pg_open(k, pg_answer_by(k)) != 0)
		return k->failure.status;
	say("CHECK ok no pooler is between us and the server");
	fit = expect(&other, "a second session is opened", pg_open(&other, pg_answer_by(k)), 0) &&
	      expect(k, "the first session takes the advisory lock", pg_try_queue(k), 1) &&
	      expect(&other, "the second one does not get it", pg_try_queue(&other), 0) &&
	      expect(k, "a row can be added to semlock.held", pg_enter(k, pg_answer_by(k)), 1) &&
	      expect(&other, "the second session sees it, and adds none", pg_enter(&other, pg_answer_by(k)), 0) &&
	      expect(&other, "nor removes it before its time", pg_expire(&other), 0) &&
	      expect(k, "the row can be renewed", pg_renew(k, pg_answer_by(k)), 1) &&
	      expect(k, "and removed", pg_remove(k, pg_answer_by(k)), 1);
	notes(k);
	PQfinish(other.db);
	return fit ? EXIT_RELEASED : EXIT_UNAVAILABLE;
}
