/* SPDX-License-Identifier: MIT */
/* locksmith/postgresql/place.h - each step of a lock's life, as one query.  Moments are those of
 * clock_boottime(). */
#ifndef SEMLOCK_LOCKSMITH_POSTGRESQL_PLACE_H
#define SEMLOCK_LOCKSMITH_POSTGRESQL_PLACE_H

#include "locksmith/common/engine.h"
#include "locksmith/postgresql/pglock.h"

/* Make our row, or renew it, and enter if nothing is in the way.  Returns 1 if we have entered; 0
 * if something is in the way (with --no-wait we have no row then); or -1 with lock->error filled,
 * as do all functions here. */
int place_step(struct pg_lock *lock);

/* Renew our place in the queue, without trying to enter.  Returns 0, with lock->before, lock->room
 * and lock->session.ours set; if our row no longer exists, only sets lock->before to 0, and returns
 * 0, too.  Returns -1 if it got no answer. */
int place_beat(struct pg_lock *lock);

/* Renew our lock.  Returns 1; 0 if our row no longer exists; or -1. */
int place_renew(struct pg_lock *lock, int64_t until);

/* Wait for the synchronous standby, if there is one.  Returns 0, or -1. */
int place_confirm(struct pg_lock *lock, int64_t until);

/* Remove our row, and wake the next waiter.  Returns 1; 0 if it no longer existed; or -1. */
int place_remove(struct pg_lock *lock, int64_t until);

/* Say who holds and who waits.  Returns LOOK_FREE or LOOK_BUSY; or LOOK_FAILED, with lock->error
 * filled. */
enum look place_who(struct pg_lock *lock);

#endif
