/* SPDX-License-Identifier: MIT */
/* locksmith/postgresql/session.h - sessions with the server, queries and their answers.  Moments
 * are those of clock_boottime(). */
#ifndef SEMLOCK_LOCKSMITH_POSTGRESQL_SESSION_H
#define SEMLOCK_LOCKSMITH_POSTGRESQL_SESSION_H

#include "locksmith/postgresql/pglock.h"

/* Close the session, if there is one. */
void session_close(struct pg_lock *lock);

/* Return the moment until which to wait for an answer. */
int64_t session_answer_by(const struct pg_lock *lock);

/* The same for a query on which a lease depends: leave time for two more tries, at other hosts. */
int64_t session_try_by(const struct pg_lock *lock);

/* Begin the text of a query (query.h), in a new session if there is none, by UNTIL.  Returns 0, or
 * -1 with lock->error filled. */
int session_begin(struct pg_lock *lock, const char *commit, int64_t until);

/* Send the query, and wait for its answer.  Returns the result of its last statement, which has
 * COLUMNS columns; or NULL with lock->error filled, if the server reports an error or a warning,
 * gives an invalid answer, or gives none before UNTIL; if the session ends; or, with PG_ENTERS, if
 * semlock no longer wants the lock.  Closes the session if it cannot send another query. */
PGresult *session_ask(struct pg_lock *lock, int columns, int64_t until);

/* The same for a query whose rows do not matter.  Returns how many rows it has read or changed, or
 * -1. */
int session_do(struct pg_lock *lock, int columns, int64_t until);

/* Wait until the server or semlock says something, or until the moment UNTIL.  Returns 0, or -1
 * with lock->error filled: the session has ended, and is closed. */
int session_wait(struct pg_lock *lock, int64_t until);

/* Did the last query fail with the SQLSTATE STATE?  If STATE has two characters: with one of that
 * class? */
bool session_failed_by(const struct pg_lock *lock, const char *state);

/* Fill lock->error: the answer is invalid, from a hostile server or something other than
 * PostgreSQL.  Returns -1. */
int session_nonsense(struct pg_lock *lock);

#endif
