/* owners/verify.h - what proves that a process holds a lock made of files. */
#ifndef SEMLOCK_OWNERS_VERIFY_H
#define SEMLOCK_OWNERS_VERIFY_H

#include <stdbool.h>

#include "methods/file/owner_record.h"
#include "owners/owners.h"

/* Does RECORD name a process through which OWNER has the lock's file under flock(2), or one
 * that such a process watches over? */
bool verify_names(const struct owner *owner, const struct record *record);

/* OWNER has the lock's file under flock(2): as its holder?  RECORD is what is in the file. */
bool verify_is_holder(const struct owner *owner, const struct record *record);

/* RECORD is another host's, as far as it says. */
bool verify_other_host(const struct record *record);

/* Has process PID, which was found to be LOCK's holder, the lock still?  Root or PID's user owns
 * what is under the lock's name, and PID has that under flock(2), or is what the record there says
 * now, by number and start, of this boot and this PID namespace. */
bool verify_now(const struct lock *lock, pid_t pid);

#endif
