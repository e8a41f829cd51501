/* SPDX-License-Identifier: MIT */
/* cli/option_table.h - the table of the options (options.def): their numbers, their names, and what
 * getopt_long(3) wants to know of them. */
#ifndef SEMLOCK_CLI_OPTION_TABLE_H
#define SEMLOCK_CLI_OPTION_TABLE_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include "lock/method.h"

enum option_id {
#define OPTION(id, letters, names, argument, locks, action, help) OPT_##id,
#include "cli/options.def"
	OPTIONS /* so many */
};

/* A set of options has a bit for each. */
#define OPTION_BIT(number) (UINT64_C(1) << (number))
#define OPT(id) OPTION_BIT(OPT_##id)

/* The families of methods that know an option. */
enum {
	KERNEL_LOCKS = 1 << OF_KERNEL,
	FILE_LOCKS = 1 << OF_FILES,
	SERVER_LOCKS = 1 << ON_SERVER,
	ALL_LOCKS = KERNEL_LOCKS | FILE_LOCKS | SERVER_LOCKS
};

/* For getopt_long(3), whose answer option_of() understands. */
struct option_table {
	const char *letters;
	const struct option *longs; /* ALL of them, and one whose name is NULL */
	/* so many are in --help; the rest are prefixes that flock(1) accepts */
	unsigned names;
	unsigned all;
};

/* The table; built by the first call, for pointers that the linker would write into it cost every
 * start a page or two. */
const struct option_table *option_table(void);

/* The option that getopt_long(3) has answered, or OPTIONS if it is none. */
enum option_id option_of(int answer);

/* "-n", or "--queue-max" where there is no letter: what messages call option ID.  The text may be
 * overwritten by the next call. */
const char *option_name(enum option_id id);

/* Is WORD, which begins with a dash, one of the options, alone: "-n", "--wait", "--wait=5"? */
bool option_known(const char *word);

#endif
