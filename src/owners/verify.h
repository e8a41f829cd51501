/* owners/verify.h - does a process hold a lock made of files? */
#ifndef SEMLOCK_OWNERS_VERIFY_H
#define SEMLOCK_OWNERS_VERIFY_H

#include <stdbool.h>

#include "methods/file/owner_record.h"
#include "owners/owners.h"

/* Does RECORD name a process through which OWNER has the lock's file under flock(2), or a child of
 * such a process? */
bool verify_names(const struct owner *owner, const struct record *record);

/* OWNER has the lock's file under flock(2): as the lock's holder, not as a waiter?  RECORD is the
 * file's. */
bool verify_is_holder(const struct owner *owner, const struct record *record);

/* Is RECORD another host's, as far as it says? */
bool verify_other_host(const struct record *record);

/* Does process PID, which was found to be LOCK's holder, hold it still?  Root or PID's user must own
 * the lock; and PID has it under flock(2), or is named in its record by PID and start, of this boot
 * and PID namespace. */
bool verify_now(const struct lock *lock, pid_t pid);

#endif
