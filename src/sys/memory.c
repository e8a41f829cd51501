/* SPDX-License-Identifier: MIT */
/* The first malloc() of a process makes up to four system calls and touches new pages: much of the
 * cost of a start.  A static array costs nothing. */
#include <config.h>

#include <stdalign.h>
#include <stdlib.h>

#include "sys/memory.h"

/* Enough for fifty environment variables; the writable data of a static program fills three pages,
 * and no fourth. */
enum { ROOM = 72 * alignof(max_align_t) };

void *memory_lasting(size_t size)
{
	static alignas(max_align_t) char room[ROOM];
	static size_t used;
	void *memory = room + used;

	if (size > ROOM - used)
		return calloc(1, size);
	used += (size + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
	return memory;
}
