/* SPDX-License-Identifier: MIT */
/* locksmith/s3/s3_wait.h - until the lock is ours. */
#ifndef SEMLOCK_LOCKSMITH_S3_S3_WAIT_H
#define SEMLOCK_LOCKSMITH_S3_S3_WAIT_H

#include "locksmith/common/engine.h"
#include "locksmith/s3/s3_lock.h"
#include "report/error.h"

/* Wait as long as the options say: ENGINE_TAKEN: lock->since and lock->token are set; ENGINE_BUSY,
 * which is said; ENGINE_RELEASED: semlock wants it no more; ENGINE_FAILED with ERROR filled. */
enum engine_outcome s3_wait(struct s3_lock *lock, struct error *error);

#endif
