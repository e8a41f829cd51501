/* SPDX-License-Identifier: MIT */
/* methods/file/heartbeat.h - a thread that gives signs of life for the command's locks made of files,
 * and monitors them while the command runs.
 *
 * Other programs can remove such a lock, or take it for stale.  A beat keeps away waiters that go by
 * age; after a loss, the sooner the command ends, the less harm it does. */
#ifndef SEMLOCK_METHODS_FILE_HEARTBEAT_H
#define SEMLOCK_METHODS_FILE_HEARTBEAT_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "lock/lock.h"
#include "report/error.h"

/* The value of --on-lost: a signal's number, this, or 0 without the option. */
enum { LOST_WARN = -1 };

/* A method's guard and unguard: a thread, if the locks need it. */
int heartbeat_guard(const struct guard *guard, struct error *error);
void heartbeat_unguard(void);

#endif
