/* SPDX-License-Identifier: MIT */
/* locksmith/postgresql/schema.h - the table, and why the server refuses to have it used. */
#ifndef SEMLOCK_LOCKSMITH_POSTGRESQL_SCHEMA_H
#define SEMLOCK_LOCKSMITH_POSTGRESQL_SCHEMA_H

#include "locksmith/postgresql/pglock.h"

/* Did the last query fail because there is no table? */
bool schema_is_missing(const struct pg_lock *lock);

/* Make the table.  Returns 0, or -1 with lock->error filled. */
int schema_make(struct pg_lock *lock);

/* Did it fail because of what the role may do, or of what the table is like? */
bool schema_is_refused(const struct pg_lock *lock);

/* Fill lock->error with what cures that.  Returns -1. */
int schema_explain_refusal(struct pg_lock *lock);

#endif
