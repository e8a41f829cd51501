/* owners/look.h - the owners of a lock that is only known by its name. */
#ifndef SEMLOCK_OWNERS_LOOK_H
#define SEMLOCK_OWNERS_LOOK_H

#include "owners/owners.h"

/* Fill FOUND with the owners of LOCK, whose name and method are set, and need not be open; a server is asked.
 * Without METHOD_NAMED, a lock of any method counts.  Returns 0, or -1 with ERROR filled. */
int look_by_name(struct owners *found, struct lock *lock, bool method_named, struct error *error);

#endif
