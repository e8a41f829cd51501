/* methods/kernel/limits.h - what a kernel lock cannot promise on the file system that its file is on. */
#ifndef SEMLOCK_METHODS_KERNEL_LIMITS_H
#define SEMLOCK_METHODS_KERNEL_LIMITS_H

#include "lock/lock.h"

/* Does flock(2) of a file like LOCK->fd lock its bytes, at a server; and of a directory, for this machine
 * alone? */
bool limits_of_network(const struct lock *lock);

/* Can the open LOCK, of a kernel method, do what was asked for?  Returns 0, or -1 with ERROR filled. */
int limits_check(const struct lock *lock, struct error *error);

#endif
