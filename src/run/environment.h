/* run/environment.h - what the command is told of the lock that it runs under. */
#ifndef SEMLOCK_RUN_ENVIRONMENT_H
#define SEMLOCK_RUN_ENVIRONMENT_H

#include "lock/lock.h"

/* Set SEMLOCK_LOCK, _METHOD, _MODE, _SLOT and _TOKEN, as LOCK, the one that was named first, has
 * them, and add the COUNT locks held to SEMLOCK_HELD.  LABEL is how the user named LOCK.
 * Returns 0, or -1 with ERROR filled when there is no memory. */
int environment_set(const struct lock *lock, const char *label, const struct lock *held,
    unsigned count, struct error *error);

#endif
