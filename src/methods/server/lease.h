/* SPDX-License-Identifier: MIT */
/* methods/server/lease.h - while the command runs: a thread that ends it before the lease of its lock ends.
 *
 * sys/lease_schedule.h says when, and why.  The timer is semlock's: if the helper is stopped, killed or cut off and sends no HELD, the command
 * is ended before another holder can have the lock.  Times are on CLOCK_BOOTTIME. */
#ifndef SEMLOCK_METHODS_SERVER_LEASE_H
#define SEMLOCK_METHODS_SERVER_LEASE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "lock/lock.h"
#include "sys/pipe_holders.h"

/* A method's guard and unguard, for one lock. */
int lease_guard(const struct guard *guard, struct error *error);
void lease_unguard(void);

#endif
