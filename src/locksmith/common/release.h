/* SPDX-License-Identifier: MIT */
/* locksmith/common/release.h - the end of a lock that is held.
 *
 * This part decides how long to go on asking a server that does not answer.  If an answer was
 * missed, it decides whether the lock was released or lost. */
#ifndef SEMLOCK_LOCKSMITH_COMMON_RELEASE_H
#define SEMLOCK_LOCKSMITH_COMMON_RELEASE_H

#include "locksmith/common/engine.h"

/* Release the lock.  Tries for the length of the lease, but 10 s at least and 30 s at most.
 * Returns 0, or -1 with ERROR filled.  ERROR_LOST: the lock was lost before; any other kind: it is
 * not released, and expires. */
int release_lock(struct turn *turn, struct error *error);

/* Remove what a wait or a lost lock may have left on the server, so that nobody has to wait until
 * it expires.  Tries once. */
void release_rest(struct turn *turn);

#endif
