/* SPDX-License-Identifier: MIT */
/* sys/memory.h - memory that is never freed. */
#ifndef SEMLOCK_SYS_MEMORY_H
#define SEMLOCK_SYS_MEMORY_H

#include <stddef.h>

/* SIZE zeroed bytes that last as long as the process, for the few small things that every start
 * needs.  NULL: no memory. */
void *memory_lasting(size_t size);

#endif
