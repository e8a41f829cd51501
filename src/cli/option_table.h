/* SPDX-License-Identifier: MIT */
/* cli/option_table.h - the table of the options (options.def): their numbers, their names, and the
 * tables for getopt_long(3). */
#ifndef SEMLOCK_CLI_OPTION_TABLE_H
#define SEMLOCK_CLI_OPTION_TABLE_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lock/method.h"

enum option_id {
#define OPTION(id, letters, names, argument, locks, action, help) OPT_##id,
#include "cli/options.def"
	OPTIONS /* how many there are */
};

/* A set of options is a number in which each option has a bit. */
#define OPTION_BIT(number) (UINT64_C(1) << (number))
#define OPT(id) OPTION_BIT(OPT_##id)

/* The families of methods that support an option. */
enum {
	KERNEL_LOCKS = 1 << OF_KERNEL,
	FILE_LOCKS = 1 << OF_FILES,
	SERVER_LOCKS = 1 << ON_SERVER,
	ALL_LOCKS = KERNEL_LOCKS | FILE_LOCKS | SERVER_LOCKS
};

/* A row of the table, without its action.  It has characters, and no pointers: a
 * position-independent program relocates each of its pointers at each start. */
struct option_row {
	char letters[3];
	char names[24];
	char argument[9];
	char locks; /* KERNEL_LOCKS, ... */
	char help[59];
};

extern const struct option_row option_rows[OPTIONS];

enum {
	OPTION_NAMES_SIZE = 0 /* bytes: all names, each with its NUL */
#define OPTION(id, letters, names, argument, locks, action, help) +(int)sizeof names
#define PREFIXES(id, words) +(int)sizeof words
#include "cli/options.def"
	,
	/* the most names and prefixes in the table, which is on the stack.  Few options have
	 * several: 20 more than there are options are enough */
	OPTION_NAMES_MOST = OPTIONS + 20
};

/* The tables for getopt_long(3).  option_of() translates what getopt_long(3) returns. */
struct option_table {
	unsigned names;     /* how many entries of LONGS --help lists ... */
	unsigned all;       /* ... and how many there are with the prefixes of flock(1) */
	size_t text_length; /* bytes used of TEXT, which holds the names */
	char letters[4 * OPTIONS];
	char text[OPTION_NAMES_SIZE];
	struct option longs[OPTION_NAMES_MOST + 1]; /* the last one has the name NULL */
};

/* Fill TABLE. */
void option_table_fill(struct option_table *table);

/* The option for getopt_long(3)'s answer, or OPTIONS if it is unknown. */
enum option_id option_of(int answer);

/* Option ID as messages name it: "-n", or "--queue-max" if it has no letter.  The next call may
 * overwrite the text. */
const char *option_name(enum option_id id);

/* Is WORD, which begins with a dash, one option: "-n", "--wait", "--wait=5", or one of flock(1)'s
 * PREFIXES (options.def)?  Not if it is abbreviated otherwise, or a bundle of letters. */
bool option_known(const char *word);

#endif
