/* The first malloc() of a process asks the kernel for memory, up to four times, and touches
 * pages of it: much of what a start costs.  What the program brings along is there already. */
#include <config.h>

#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>

#include "sys/memory.h"

enum { ROOM = 100 * alignof(max_align_t) }; /* what a start takes with some hundred variables */

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
