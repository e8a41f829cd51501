/* waiters.h - who waits for a lock, in the order in which they will be served. */
#ifndef SEMLOCK_WAITERS_H
#define SEMLOCK_WAITERS_H

#include "occupants.h"
#include "scene.h"

/* Add those who wait to FOUND: first who stands in the kernel's own queue for the lock (the
 * first of semlock's queue does, and everybody who does not know that queue), in its order,
 * then those behind by their tickets. */
void waiters_add(struct occupants *found, const struct scene *scene, unsigned kinds);

#endif
