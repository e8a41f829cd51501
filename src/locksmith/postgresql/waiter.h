/* SPDX-License-Identifier: MIT */
/* locksmith/postgresql/waiter.h - the wait for a lock: when the server is asked, and over which
 * session. */
#ifndef SEMLOCK_LOCKSMITH_POSTGRESQL_WAITER_H
#define SEMLOCK_LOCKSMITH_POSTGRESQL_WAITER_H

#include "locksmith/common/engine.h"
#include "locksmith/postgresql/pglock.h"

/* Ask for the lock, or keep our place in its queue, as engine.look() does.  With LOOK_TAKEN,
 * lock->token is set; otherwise lock->error holds the error, if any. */
enum look waiter_look(struct pg_lock *lock, struct turn *turn);

/* Wait, at most until UNTIL.  If we hear of our turn, or lose our session, set turn->at to 0. */
void waiter_rest(struct pg_lock *lock, struct turn *turn, int64_t until);

#endif
