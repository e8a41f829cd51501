/* SPDX-License-Identifier: MIT */
/* locksmith/postgresql/waiter.h - the wait for a lock: when the server is asked, and over which
 * session. */
#ifndef SEMLOCK_LOCKSMITH_POSTGRESQL_WAITER_H
#define SEMLOCK_LOCKSMITH_POSTGRESQL_WAITER_H

#include "locksmith/common/engine.h"
#include "locksmith/postgresql/pglock.h"

/* Ask for the lock, and wait in the queue.  Returns ENGINE_TAKEN with lock->token set;
 * ENGINE_RELEASED if semlock wants it no more; ENGINE_BUSY if the time is up, or with --no-wait; or
 * ENGINE_FAILED with lock->error filled.
 */
enum engine_outcome waiter_acquire(struct pg_lock *lock);

#endif
