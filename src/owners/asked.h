/* SPDX-License-Identifier: MIT */
/* owners/asked.h - the locks that this machine's semlock processes were asked for, by their command lines. */
#ifndef SEMLOCK_OWNERS_ASKED_H
#define SEMLOCK_OWNERS_ASKED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "owners/owners.h"
#include "sys/open_fds.h"

/* One lock of one process. */
struct asked {
	char *name; /* with its directory, or a URL; a file that has no such name here: by /proc/PID/root */
	struct identity file; /* zero: there is none of that name */
	const struct method *method;
	bool method_named;
	pid_t pid;
};

struct all_asked {
	struct asked *list;
	size_t count;
	bool unseen; /* some command lines could not be followed: permission to look at the process is missing */
	bool failed; /* no memory: some are missing */
};

/* Search all processes. */
void asked_find(struct all_asked *all);

/* Fill FOUND with the holders and waiters of the lock on a server that entry I of ALL names, as far as this
 * machine knows: the server is not asked. */
void asked_of_server(const struct all_asked *all, size_t i, struct owners *found);

#endif
