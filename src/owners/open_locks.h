/* SPDX-License-Identifier: MIT */
/* owners/open_locks.h - the locks that processes of this machine have open: descriptors with a lock on them, whatever
 * program took it; all that a semlock has open; and the helpers of locks on servers. */
#ifndef SEMLOCK_OWNERS_OPEN_LOCKS_H
#define SEMLOCK_OWNERS_OPEN_LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "owners/owners.h"
#include "sys/open_fds.h"

struct open_lock {
	char *name; /* with its directory, or a URL; a file that has no such name here: by /proc/PID/root */
	struct identity file; /* zero: on a server */
	pid_t semlock; /* of a lock on a server: the semlock that has the helper */
};

struct open_locks {
	struct open_lock *list; /* a file is there once, a URL for each helper */
	size_t count;
	bool unseen; /* some processes may not be looked into */
	bool failed; /* no memory: some are missing */
};

/* Search all processes.  A semlock may have open what is no lock: that has no owners. */
void open_locks_find(struct open_locks *all);

/* Is lock I of ALL, by its name or its file, the first one of those? */
bool open_locks_is_first(const struct open_locks *all, size_t i);

/* Fill FOUND with the holders and waiters of the lock on a server that is I of ALL, as far as this machine knows: the
 * server is not asked. */
void open_locks_of_server(const struct open_locks *all, size_t i, struct owners *found);

#endif
