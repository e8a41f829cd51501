/* SPDX-License-Identifier: MIT */
/* sys/memory.h - memory that is never freed. */
#ifndef SEMLOCK_SYS_MEMORY_H
#define SEMLOCK_SYS_MEMORY_H

#include <stddef.h>

/* Allocate SIZE zeroed bytes that last as long as the process, for the few small things that every
 * start needs.  Returns NULL if there is no memory. */
void *memory_lasting(size_t size);

#endif
