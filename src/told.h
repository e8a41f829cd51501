/* told.h - what a server tells of a lock's holders and waiters, made into occupants. */
#ifndef SEMLOCK_TOLD_H
#define SEMLOCK_TOLD_H

#include "occupants.h"

/* Add the one that WHO tells of ("mode=... pid=... host=... since=... note=..."; whatever is
 * missing is unknown) to FOUND: as one who WAITS, or holds. */
void told_add(struct occupants *found, const char *method, const char *who, bool waits);

/* Ask LOCK's server.  Returns 0, or -1 with WHY filled. */
int told_ask(struct occupants *found, const struct lock *lock, struct why *why);

#endif
