/* SPDX-License-Identifier: MIT */
/* locksmith/etcd/etcd_wait.h - from the request for a lock until it is our turn. */
#ifndef SEMLOCK_LOCKSMITH_ETCD_ETCD_WAIT_H
#define SEMLOCK_LOCKSMITH_ETCD_ETCD_WAIT_H

#include "locksmith/common/engine.h"
#include "locksmith/etcd/etcd_key.h"

/* Do what is due for our place in the queue, as engine.look() does: put our key, keep its lease,
 * look, enter.  With LOOK_TAKEN, lock->token is set. */
enum look etcd_wait_look(struct etcd_lock *lock, struct turn *turn, struct error *error);

/* Wait, at most until the moment UNTIL.  If the watch says that our place may have changed, set
 * turn->at to 0. */
void etcd_wait_rest(struct etcd_lock *lock, struct turn *turn, int64_t until);

#endif
