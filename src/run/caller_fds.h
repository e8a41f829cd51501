/* SPDX-License-Identifier: MIT */
/* run/caller_fds.h - the caller's descriptors above standard error, which nothing that stays in the
 * background (detach.h) may keep open: a reader of one of the caller's pipes would wait for it. */
#ifndef SEMLOCK_RUN_CALLER_FDS_H
#define SEMLOCK_RUN_CALLER_FDS_H

#include "report/error.h"

struct caller_fds {
	int *list; /* NULL: semlock is in the foreground */
	unsigned count;
};

/* Fill CALLER with all descriptors above standard error that are open now.  Returns 0, or -1 with
 * ERROR filled: no memory. */
int caller_fds_list(struct caller_fds *caller, struct error *error);

/* Close them in this process. */
void caller_fds_close(const struct caller_fds *caller);

/* Leave the caller, if CALLER has a list: close them, and enter the directory /. */
void caller_leave(const struct caller_fds *caller);

#endif
