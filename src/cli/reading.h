/* SPDX-License-Identifier: MIT */
/* cli/reading.h - what is known of the options while the command line is read. */
#ifndef SEMLOCK_CLI_READING_H
#define SEMLOCK_CLI_READING_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/option_table.h"
#include "lock/lock.h"

struct reading {
	/* OPT() of each option in effect: it was given, and no later option revokes it.  OPT(FD)
	 * also stands for an operand that is a descriptor's number */
	uint64_t given;
	enum lock_mode mode; /* for the next lock on the command line */
	bool has_signal;     /* --replace or --toggle names a signal */
	const char *name;    /* the name of --name; NULL: not given */
	int fd;              /* the descriptor of --fd; -1: not given */
};

/* Is one of OPTIONS, a set, in effect? */
static inline bool given(const struct reading *reading, uint64_t options)
{
	return (reading->given & options) != 0;
}

#endif
