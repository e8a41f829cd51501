/* SPDX-License-Identifier: MIT */
/* cli/other_semlock.h - reads the command line of another process, a semlock or flock(1) that holds
 * a lock or waits for one: what it asks for, and why (--note). */
#ifndef SEMLOCK_CLI_OTHER_SEMLOCK_H
#define SEMLOCK_CLI_OTHER_SEMLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lock/lock.h"

struct other_semlock {
	/* from -m, --fcntl, --start or --length, else the default; a URL does not change it */
	const struct method *method;
	enum owner_mode mode;
	bool has_range;      /* --start or --length */
	bool several;        /* the command line names several locks (-f) */
	const char *command; /* the command's first word, a part of WORDS; NULL: no command */
	const char *note;    /* --note as it was typed, a part of WORDS; NULL: no --note */
};

/* Read WORDS, a command line of LENGTH bytes, in which a zero ends each word, into OTHER.  Returns
 * false if WORDS are invalid, or if they name several locks (-f), whose modes can differ: then only
 * OTHER->note is meaningful. */
bool other_semlock_read(const char *words, size_t length, struct other_semlock *other);

#endif
