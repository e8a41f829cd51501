/* SPDX-License-Identifier: MIT */
/* locksmith/postgresql/schema.h - the table, and why the server does not let us use it. */
#ifndef SEMLOCK_LOCKSMITH_POSTGRESQL_SCHEMA_H
#define SEMLOCK_LOCKSMITH_POSTGRESQL_SCHEMA_H

#include "locksmith/postgresql/pglock.h"

/* Did the last query fail because the table does not exist? */
bool schema_is_missing(const struct pg_lock *lock);

/* The table is missing.  Was there an earlier one, so that somebody may hold a lock that a new
 * table would not know?  Returns 0: there is no sign of an earlier table; 1: it was dropped, or it
 * or its schema was renamed, and lock->error says what to do; or -1 with lock->error filled: no
 * answer. */
int schema_was_removed(struct pg_lock *lock);

/* Make the table, unless it was removed or our place in the queue was in it.  Returns 0, or -1 with
 * lock->error filled. */
int schema_make(struct pg_lock *lock);

/* Did the last query fail because of the role's permissions, or the table's definition? */
bool schema_is_refused(const struct pg_lock *lock);

/* Fill lock->error with the reason, and what to do.  Returns -1. */
int schema_explain_refusal(struct pg_lock *lock);

#endif
