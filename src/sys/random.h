/* SPDX-License-Identifier: MIT */
/* sys/random.h - random bytes from the kernel. */
#ifndef SEMLOCK_SYS_RANDOM_H
#define SEMLOCK_SYS_RANDOM_H

#include <stddef.h>

/* Fill the SIZE bytes at INTO, at most 256 of them.  Returns 0, or -1 with errno set. */
int random_fill(void *into, size_t size);

#endif
