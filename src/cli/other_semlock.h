/* SPDX-License-Identifier: MIT */
/* cli/other_semlock.h - reads the command line of another semlock, or flock(1), that waits or
 * holds: what it asks for, and why. */
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
	bool several;        /* it names several locks (-f) */
	const char *command; /* the first word of its command, in WORDS; NULL: it has none */
	const char *note;    /* --note as it was typed, in WORDS, or NULL */
};

/* Read WORDS, LENGTH bytes, each word ended by a zero, into OTHER.  Returns false if they are
 * invalid, or name several locks (-f), whose modes can differ: then only OTHER->note is
 * meaningful. */
bool other_semlock_read(const char *words, size_t length, struct other_semlock *other);

#endif
