/* SPDX-License-Identifier: MIT */
/* locksmith/common/wait.h - from the first look until the lock is ours.
 *
 * This part decides when a wait ends with BUSY, whether to wait for a server that does not answer,
 * and whether a lock came too late for the command to start. */
#ifndef SEMLOCK_LOCKSMITH_COMMON_WAIT_H
#define SEMLOCK_LOCKSMITH_COMMON_WAIT_H

#include "locksmith/common/engine.h"

/* Wait as long as the options say.  Returns LOOK_TAKEN; LOOK_BUSY, and turn->who holds it;
 * LOOK_AGAIN: semlock no longer wants it; or LOOK_FAILED, with ERROR filled. */
enum look wait_for_lock(struct turn *turn, struct error *error);

#endif
