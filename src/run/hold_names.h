/* SPDX-License-Identifier: MIT */
/* run/hold_names.h - the names of the locks of a hold in the background (detach.h), which is one,
 * whatever the number of its locks (-f): each of them names it. */
#ifndef SEMLOCK_RUN_HOLD_NAMES_H
#define SEMLOCK_RUN_HOLD_NAMES_H

#include <stdbool.h>

#include "cli/request.h"
#include "report/error.h"

struct hold_names {
	unsigned count;
	char **list; /* of hold_lock_name(); "": its directory is not there */
};

/* Fill NAMES with those of REQUEST's locks.  Returns 0, or -1 with ERROR filled: no memory. */
int hold_names_list(struct hold_names *names, const struct request *request, struct error *error);

/* Is NAME, of hold_lock_name(), one of them, or another name of the same file?  Where a directory
 * was removed meanwhile, NAME may be as it was given to --release, and its last part counts. */
bool hold_names_have(const struct hold_names *names, const char *name);

#endif
