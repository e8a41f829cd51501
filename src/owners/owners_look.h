/* SPDX-License-Identifier: MIT */
/* owners/owners_look.h - the search for a lock's owners. */
#ifndef SEMLOCK_OWNERS_OWNERS_LOOK_H
#define SEMLOCK_OWNERS_OWNERS_LOOK_H

#include "owners/owners.h"

/* Fill FOUND with LOCK's owners; LOCK is open, or its name is set.  KINDS: the kernel locks that
 * count.  A file that does not exist has no owners.  A server is not asked: its last answer is read.
 * Returns 0, or -1 with ERROR filled: the file cannot be reached, or /proc does not tell. */
int owners_look(struct owners *found, const struct lock *lock, unsigned kinds, struct error *error);

/* The same for LOCK, whose name and method are set, and that need not be open; a server is asked.  Without
 * METHOD_NAMED, a lock of any method counts. */
int owners_look_by_name(struct owners *found, struct lock_spec *spec, bool method_named, struct error *error);

/* Does process PID, at this moment, keep LOCK from being taken: by a kernel lock in one of its
 * descriptors, or as the one holder of a lock made of files?  To be asked after PID's pidfd was
 * opened: if that process has ended since, a signal reaches no process, whatever PID is by then. */
bool owners_verify(const struct lock *lock, pid_t pid);

#endif
