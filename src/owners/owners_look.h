/* owners/owners_look.h - the search for a lock's owners. */
#ifndef SEMLOCK_OWNERS_OWNERS_LOOK_H
#define SEMLOCK_OWNERS_OWNERS_LOOK_H

#include "owners/owners.h"

/* Look at LOCK, whose name is enough, or its FD; one on a server is looked at in what its helper
 * has told.  KINDS says which kernel locks count.  A
 * file that is not there is nobody's.  Returns 0, or -1 with ERROR filled when the file cannot
 * be looked at, or the system does not tell. */
int owners_look(struct owners *found, const struct lock *lock, unsigned kinds,
    struct error *error);

/* Has PID, at this moment, a descriptor that carries a lock that keeps LOCK from being taken, or,
 * with a lock made of files, is it named in it and no other?  Asked after its pidfd was opened: if
 * the process that we opened has ended since, a signal finds nobody, whatever PID is now. */
bool owners_proven(const struct lock *lock, pid_t pid);

#endif
