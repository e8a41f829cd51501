/* SPDX-License-Identifier: MIT */
/* hold/hold_names.h - the names of the locks of a hold in the background (detach.h), which is one,
 * whatever the number of its locks (-f): each of them names it. */
#ifndef SEMLOCK_HOLD_HOLD_NAMES_H
#define SEMLOCK_HOLD_HOLD_NAMES_H

#include <limits.h>
#include <stdbool.h>

#include "cli/request.h"
#include "report/error.h"

struct hold_names {
	unsigned count;
	char **list; /* of hold_lock_name(); "": its directory is not there */
};

/* Write the name of the lock NAME into TEXT: a URL as it is, a file with its real directory.
 * Returns 0, or -1 with ERROR filled if that directory cannot be named. */
int hold_lock_name(const char *name, char text[PATH_MAX + 1], struct error *error);

/* Fill NAMES with those of REQUEST's locks.  Returns 0, or -1 with ERROR filled: no memory. */
int hold_names_list(struct hold_names *names, const struct request *request, struct error *error);

/* Is NAME, of hold_lock_name(), one of them, or another name of the same file?  Where a directory
 * was removed meanwhile, NAME may be as it was given to --release, and its last part counts. */
bool hold_names_have(const struct hold_names *names, const char *name);

#endif
