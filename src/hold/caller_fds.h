/* SPDX-License-Identifier: MIT */
/* hold/caller_fds.h - the caller's descriptors above standard error.  No process that stays in the
 * background (detach.h) may keep them open: otherwise a reader of one of the caller's pipes would
 * wait until that process ends. */
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

/* Close CALLER's descriptors in this process, and empty the list: their numbers may soon mean other
 * files. */
void caller_fds_close(struct caller_fds *caller);

/* If CALLER has a list, leave the caller: close the listed descriptors, and enter the directory /.
 * The COUNT LOCKS of this process stay held: to close any descriptor of a POSIX lock's file would
 * drop the lock, so those stay open. */
void caller_leave(struct caller_fds *caller, const struct lock *locks, unsigned count);

#endif
