/* run/environment.h - the command's variables SEMLOCK_... */
#ifndef SEMLOCK_RUN_ENVIRONMENT_H
#define SEMLOCK_RUN_ENVIRONMENT_H

#include "lock/lock.h"

/* Set SEMLOCK_LOCK (to LABEL, as typed), _METHOD, _MODE, _SLOT and _TOKEN for LOCK, the one named first; add
 * the COUNT locks at HELD to SEMLOCK_HELD; remove SEMLOCK_PASSWORD for a lock on a server.  Changes environ
 * of this process.  Returns 0, or -1 with ERROR filled when there is no memory. */
int environment_set(const struct lock *lock, const char *label, const struct lock *held,
    unsigned count, struct error *error);

#endif
