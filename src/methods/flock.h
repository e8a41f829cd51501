/* methods/flock.h - flock(2): the lock of the open file description. */
#ifndef SEMLOCK_METHOD_FLOCK_H
#define SEMLOCK_METHOD_FLOCK_H

#include <sys/types.h>

#include "methods/method.h"

extern const struct method method_flock;

/* Slot N is a record lock on byte FLOCK_FIRST_SLOT + N. */
#define FLOCK_FIRST_SLOT ((off_t)1 << 62)

#endif
