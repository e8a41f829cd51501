/* SPDX-License-Identifier: MIT */
/* hold/hold_names.h - the names of the locks of a hold in the background (detach.h).  It is one
 * hold, whatever the number of its locks (-f), and a call can name it by any of them. */
#ifndef SEMLOCK_HOLD_HOLD_NAMES_H
#define SEMLOCK_HOLD_HOLD_NAMES_H

#include <limits.h>
#include <stdbool.h>

#include "cli/request.h"
#include "report/error.h"

struct hold_names {
	unsigned count;
	char **list; /* from hold_lock_name(); "": the lock's directory could not be named */
};

/* Write the name of the lock NAME into TEXT: a URL unchanged, a file as the real path of its
 * directory and its name there.  Returns 0, or -1 with ERROR filled: the path is not known, or is
 * too long. */
int hold_lock_name(const char *name, char text[PATH_MAX + 1], struct error *error);

/* Fill NAMES with those of REQUEST's locks.  Returns 0, or -1 with ERROR filled: no memory, or a
 * directory could not be named, though its name may be right. */
int hold_names_list(struct hold_names *names, const struct request *request, struct error *error);

/* Is NAME, from hold_lock_name(), one of NAMES, or another name of the same file?  If the lock's
 * directory has been removed, NAME may be what the user gave to --release; then only the last parts
 * of the names are compared. */
bool hold_names_have(const struct hold_names *names, const char *name);

#endif
