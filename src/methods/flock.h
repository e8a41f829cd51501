/* methods/flock.h - flock(2): the lock of the open file description. */
#ifndef SEMLOCK_METHOD_FLOCK_H
#define SEMLOCK_METHOD_FLOCK_H

#include "methods/method.h"

extern const struct method method_flock;

#endif
