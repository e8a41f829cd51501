/* SPDX-License-Identifier: MIT */
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
