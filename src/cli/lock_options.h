/* cli/lock_options.h - which locks the command line of another semlock process names. */
#ifndef SEMLOCK_CLI_LOCK_OPTIONS_H
#define SEMLOCK_CLI_LOCK_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "lock/method.h"

enum { LOCK_OPTIONS_WORDS = 256 };

/* The locks that the command line of another semlock names.  Its words are not copied. */
struct lock_options {
	const struct method *method;
	bool method_named;
	const char *name;    /* --name; NULL */
	const char *fd;      /* --fd; NULL */
	const char *operand; /* the first word behind the options; NULL */
	const char *more[LOCK_OPTIONS_WORDS]; /* those of -f */
	size_t nmore;
};

/* Read ARGV into LOCK: at most LOCK_OPTIONS_WORDS words, which a semlock has accepted already.  Returns false
 * if that semlock takes no lock. */
bool lock_options_read(struct lock_options *lock, int argc, char **argv);

#endif
