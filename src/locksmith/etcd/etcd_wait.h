/* SPDX-License-Identifier: MIT */
/* locksmith/etcd/etcd_wait.h - from the request for a lock until it is our turn. */
#ifndef SEMLOCK_LOCKSMITH_ETCD_ETCD_WAIT_H
#define SEMLOCK_LOCKSMITH_ETCD_ETCD_WAIT_H

#include "locksmith/common/engine.h"
#include "locksmith/etcd/etcd_key.h"

/* Wait for the lock, as long as its options say.  Returns ENGINE_TAKEN with lock->token set;
 * ENGINE_BUSY with lock->place.who; ENGINE_RELEASED: semlock wants it no more; or ENGINE_FAILED
 * with ERROR filled. */
enum engine_outcome etcd_wait(struct etcd_lock *lock, struct error *error);

#endif
