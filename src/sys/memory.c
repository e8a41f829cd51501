/* SPDX-License-Identifier: MIT */
/* The first malloc() of a process makes up to four system calls and touches new pages: much of the
 * cost of a start.  A static array costs nothing. */
#include <config.h>

#include <stdalign.h>
#include <stdlib.h>

#include "sys/memory.h"

/* Enough for fifty environment variables, but small enough that a static program's writable data
 * fits in three pages. */
enum { ROOM = 72 * alignof(max_align_t) };

void *memory_lasting(size_t size)
{
	static alignas(max_align_t) char room[ROOM];
	static void **allocated; /* the last block; a leak detector follows the list from here */
	static size_t used;
	void *memory = room + used;
	void **block;

	if (size > ROOM - used) {
		block = calloc(1, alignof(max_align_t) + size);
		if (block == NULL)
			return NULL;
		*block = allocated;
		allocated = block;
		return (char *)block + alignof(max_align_t);
	}
	used += (size + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
	return memory;
}
