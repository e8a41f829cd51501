/* SPDX-License-Identifier: MIT */
/* sys/memory.h - memory that is never given back. */
#ifndef SEMLOCK_SYS_MEMORY_H
#define SEMLOCK_SYS_MEMORY_H

#include <stddef.h>

/* SIZE bytes of zeros that last as long as the process, for the few small things that every start needs.
 * NULL: no memory. */
void *memory_lasting(size_t size);

/* Write NUMBER at AT in hexadecimal, with a zero behind it, in at most 17 bytes.  Returns the address
 * of that zero.  Used at every start, where loading stdio would cost time. */
char *text_hex(char *at, unsigned long long number);

#endif
