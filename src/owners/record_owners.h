/* owners/record_owners.h - who holds a lock that is made of files.
 *
 * Two things tell: the flock that semlock keeps on such a lock while it is held, which /proc
 * shows, and the record in it, which is anybody's word.  Who is named there is found alive,
 * dead or neither by the table in liveness.c. */
#ifndef SEMLOCK_OWNERS_RECORD_OWNERS_H
#define SEMLOCK_OWNERS_RECORD_OWNERS_H

#include "owners/owners.h"

/* Look at LOCK, which may be open or not: at most one holder, or who has left it behind, and
 * those who wait.  Returns 0, or -1 with ERROR filled. */
int record_owners_look(struct owners *found, const struct lock *lock, struct error *error);

/* The proof: is PID one through which LOCK is held, beyond doubt, at this moment? */
bool record_owners_held(const struct lock *lock, pid_t pid);

#endif
