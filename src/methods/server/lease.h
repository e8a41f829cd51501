/* SPDX-License-Identifier: MIT */
/* methods/server/lease.h - a thread that ends the command before the lock's lease ends.
 *
 * The timer is in semlock, because the helper can be stopped, killed or cut off from the server.
 * Then no HELD comes, and semlock ends the command before another holder can get the lock.
 * protocol/lease_schedule.h says when. */
#ifndef SEMLOCK_METHODS_SERVER_LEASE_H
#define SEMLOCK_METHODS_SERVER_LEASE_H

#include "lock/lock.h"
#include "report/error.h"

/* Start a thread that watches the lease of GUARD's one lock, and tell the helper that the command
 * runs.  Returns 0, or -1 with ERROR filled if the lease is over or about to be, or if the thread
 * cannot be started. */
int lease_guard(const struct guard *guard, struct error *error);

/* The command has ended: end the thread.  Then, if the lock was lost, end the processes that the
 * command has left behind. */
void lease_unguard(void);

/* The name of the thread, by which --who recognises a holder. */
#define LEASE_THREAD "semlock-lease"

#endif
