/* SPDX-License-Identifier: MIT */
/* hold/caller_fds.h - the caller's descriptors above standard error, which nothing that stays in
 * the background (detach.h) may keep open: a reader of one of the caller's pipes would wait for it.
 */
#ifndef SEMLOCK_HOLD_CALLER_FDS_H
#define SEMLOCK_HOLD_CALLER_FDS_H

#include "lock/lock.h"
#include "report/error.h"

struct caller_fds {
	int *list; /* NULL: semlock is in the foreground */
	unsigned count;
};

/* Fill CALLER with all descriptors above standard error that are open now.  Returns 0, or -1 with
 * ERROR filled: no memory. */
int caller_fds_list(struct caller_fds *caller, struct error *error);

/* Close them in this process.  The list is empty after that: their numbers may be another file's
 * soon. */
void caller_fds_close(struct caller_fds *caller);

/* Leave the caller, if CALLER has a list: close them, and enter the directory /.  Of the COUNT
 * LOCKS of this process, none is dropped by that: a POSIX lock's file stays open. */
void caller_leave(struct caller_fds *caller, const struct lock *locks, unsigned count);

#endif
