/* SPDX-License-Identifier: MIT */
/* cli/reading.h - what the command line says beside its request, while it is read. */
#ifndef SEMLOCK_CLI_READING_H
#define SEMLOCK_CLI_READING_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/option_table.h"
#include "lock/lock.h"

struct reading {
	/* OPT() of each option that is in effect: it was given, and none behind it takes it back.
	 * FD also for an operand that is the number of a descriptor */
	uint64_t given;
	enum lock_mode mode; /* of the next lock to be named */
	const char *name;    /* --name; NULL */
	int fd;              /* --fd; -1 */
};

/* Is one of OPTIONS, a set, in effect? */
static inline bool given(const struct reading *reading, uint64_t options)
{
	return (reading->given & options) != 0;
}

#endif
