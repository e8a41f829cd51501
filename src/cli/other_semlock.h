/* SPDX-License-Identifier: MIT */
/* cli/other_semlock.h - the command line of another semlock, or flock(1), that waits or holds: what
 * does it want, and why? */
#ifndef SEMLOCK_CLI_OTHER_SEMLOCK_H
#define SEMLOCK_CLI_OTHER_SEMLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lock/method.h"

struct other_semlock {
	/* by -m, --fcntl, --start or --length; else the default.  Not of a URL */
	const struct method *method;
	enum { WANTS_EXCLUSIVE, WANTS_SHARED, WANTS_SLOT } mode;
	bool has_range;      /* --start or --length */
	bool several;        /* locks (-f) */
	const char *command; /* the first word of its command, in WORDS; NULL: it has none */
	pid_t holds_for;     /* --hold=PID; 0: for none */
	const char *note;    /* why, as it was typed (--note), in WORDS; NULL: it does not say */
};

/* Read WORDS, LENGTH bytes, each word ended by a zero, into OTHER.  Returns false if they make no
 * sense, or name several locks (-f), which can differ in their modes: then OTHER has its note
 * alone. */
bool other_semlock_read(const char *words, size_t length, struct other_semlock *other);

#endif
