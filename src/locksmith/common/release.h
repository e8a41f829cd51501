/* SPDX-License-Identifier: MIT */
/* locksmith/common/release.h - the end of a lock that is held.
 *
 * It decides how long an absent server is asked to release, and what a lost answer meant. */
#ifndef SEMLOCK_LOCKSMITH_COMMON_RELEASE_H
#define SEMLOCK_LOCKSMITH_COMMON_RELEASE_H

#include "locksmith/common/engine.h"

/* Release the lock.  Try for the length of the lease, but 10 s at least and 30 s at most.  Returns
 * 0, or -1 with ERROR filled.  ERROR_LOST: the lock was lost before; any other kind: it lapses by
 * itself. */
int release_lock(struct turn *turn, struct error *error);

/* Remove what a wait or a lost lock may have left, so that nobody waits for it to lapse.  One
 * try. */
void release_rest(struct turn *turn);

#endif
