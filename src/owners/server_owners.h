/* owners/server_owners.h - what a server tells of a lock's holders and waiters, made into occupants. */
#ifndef SEMLOCK_OWNERS_SERVER_OWNERS_H
#define SEMLOCK_OWNERS_SERVER_OWNERS_H

#include "owners/owners.h"

/* Add the one that WHO tells of ("mode=... pid=... host=... since=... note=..."; whatever is
 * missing is unknown) to FOUND: as one who WAITS, or holds. */
void server_owners_add(struct owners *found, const char *method, const char *who, bool waits);

/* Ask LOCK's server.  Returns 0, or -1 with ERROR filled. */
int server_owners_ask(struct owners *found, const struct lock *lock, struct error *error);

#endif
