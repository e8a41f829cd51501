/* SPDX-License-Identifier: MIT */
/* locksmith/common/release.h - the end of a lock that is held.
 *
 * It decides how long an absent server is asked to release, and what a lost answer meant. */
#ifndef SEMLOCK_LOCKSMITH_COMMON_RELEASE_H
#define SEMLOCK_LOCKSMITH_COMMON_RELEASE_H

#include "locksmith/common/engine.h"

/* Release the lock; try for a lease, but 10 to 30 seconds.  Returns 0, or -1 with ERROR filled:
 * ERROR_LOST: it was lost before; else it lapses by itself. */
int release_lock(struct turn *turn, struct error *error);

/* Remove what a wait or a lost lock may have left, so that nobody waits until that lapses.  One
 * try. */
void release_rest(struct turn *turn);

#endif
