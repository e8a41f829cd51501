/* methods/kernel/flock.h - flock(2): the lock of the open file description. */
#ifndef SEMLOCK_METHODS_KERNEL_FLOCK_H
#define SEMLOCK_METHODS_KERNEL_FLOCK_H

#include "lock/method.h"

extern const struct method method_flock;

#endif
