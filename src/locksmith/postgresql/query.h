/* SPDX-License-Identifier: MIT */
/* locksmith/postgresql/query.h - the text of a query: statements of SQL with variables, as psql has
 * them.
 *
 *   :name           the lock's name
 *   :id             our row's id
 *   :mode :slots    how we want to hold the lock: the mode, and how many slots there are
 *   :lease          how long a lock lasts
 *   :placelease     how long a place in the queue lasts
 *   :client         what others are told about us
 *   :command        the PID that others see: the command's, or semlock's before START
 *   :backend        the PID of the session's server process, as libpq knows it; behind a pooler,
 *                   the real process is another
 *   :seat           the pid for our row: that of :backend, or NULL if we keep no session
 *   :queued         true if our row has waited in the queue
 *   :idle           idle time after which the server may end a session of ours
 *   :waits :holds   the session's name while we wait and while we hold, or NULL
 *   :token          the fencing token of our row, which holds
 *   :channel        the channel of the NOTIFY that tells us that it is our turn
 *
 * A query of several statements is one transaction, without BEGIN and COMMIT, and one round trip.
 * Such a query takes no parameters, so the values are in its text, as literals made by libpq. */
#ifndef SEMLOCK_LOCKSMITH_POSTGRESQL_QUERY_H
#define SEMLOCK_LOCKSMITH_POSTGRESQL_QUERY_H

#include <stdint.h>

#include "locksmith/postgresql/pglock.h"

/* Begin the text of a query over the session lock->db, with settings that end with its transaction.
 * COMMIT is the value of synchronous_commit; the answer must come by UNTIL, on clock_boottime()'s
 * clock.  Returns 0, or -1 with lock->error filled: the lock's name is not valid in the session's
 * encoding. */
int query_begin(struct pg_lock *lock, const char *commit, int64_t until);

/* Add the statement SQL, with the values of its variables.  A variable not listed above, or a text
 * that is too long, is a bug, and aborts. */
void query_add(struct pg_lock *lock, const char *sql);

/* Add a clause to the last statement. */
void query_extend(struct pg_lock *lock, const char *sql);

#endif
