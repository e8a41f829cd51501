/* cli/options.h - the command line's options. */
#ifndef SEMLOCK_CLI_OPTIONS_H
#define SEMLOCK_CLI_OPTIONS_H

#include "cli/request.h"

/* Fill REQUEST from ARGV.  Ends the program with EXIT_USAGE, and a message, when ARGV makes no sense;
 * with EXIT_SUCCESS for --help and --version. */
void request_read(struct request *request, int argc, char **argv);

enum { OPTIONS_WORDS = 256 };

/* The locks that the command line of another semlock names.  Its words are not copied. */
struct options_lock {
	const struct method *method;
	bool method_named;
	const char *name;    /* --name; NULL */
	const char *fd;      /* --fd; NULL */
	const char *operand; /* the first word behind the options; NULL */
	const char *more[OPTIONS_WORDS]; /* those of -f */
	size_t nmore;
};

/* Read the OPTIONS_WORDS words at most of ARGV, which a semlock has accepted already, into LOCK.  Reorders
 * nothing and prints nothing.  Returns false if that semlock takes no lock. */
bool options_read_lock(struct options_lock *lock, int argc, char **argv);

#endif
