/* SPDX-License-Identifier: MIT */
/* methods/server/lease.h - while the command runs, a thread ends it before the lease of its lock
 * ends.
 *
 * The timer is semlock's: if the helper is stopped, killed or cut off and sends no HELD, the
 * command is ended before another holder can get the lock.  protocol/lease_schedule.h says when.
 *  */
#ifndef SEMLOCK_METHODS_SERVER_LEASE_H
#define SEMLOCK_METHODS_SERVER_LEASE_H

#include "lock/lock.h"
#include "report/error.h"

/* Watch the lease of GUARD's one lock, in a thread, and tell the helper that the command runs.
 * Returns 0, or -1 with ERROR filled: the lease is over already, or there is no thread. */
int lease_guard(const struct guard *guard, struct error *error);

/* The command has ended: end the thread.  If the lock was lost, first end what the command has left
 * behind. */
void lease_unguard(void);

/* The name of the thread, by which --who recognises a holder. */
#define LEASE_THREAD "semlock-lease"

#endif
