/* several.h - more than one lock at once: all or none, and without deadlock. */
#ifndef SEMLOCK_SEVERAL_H
#define SEMLOCK_SEVERAL_H

#include "lock.h"

/* Take the COUNT locks at LOCKS, which may be put into another order for it, under one
 * PATIENCE.  On BUSY or FAILED none is held, and *CULPRIT is the one it failed at. */
enum outcome several_take(struct lock *locks, unsigned count, const struct patience *patience,
    const struct lock **culprit, struct why *why);

/* Let all of them go. */
void several_forget(struct lock *locks, unsigned count);

#endif
