/* SPDX-License-Identifier: MIT */
/* cli/reading.h - the command line while it is read, by options.c and usage.c.  A command line that makes no sense
 * ends the program with EXIT_USAGE, and a message. */
#ifndef SEMLOCK_CLI_READING_H
#define SEMLOCK_CLI_READING_H

#include <getopt.h>
#include <stdnoreturn.h>

#include "cli/request.h"

/* What the command line says beside its request, to check it by. */
struct reading {
	enum lock_mode mode; /* of the next lock to be named */
	const char *name;    /* --name; NULL */
	int fd;              /* --fd */
	bool limited, kills; /* --run-timeout, --kill-after */
	bool acts;           /* an option that does not go with --who */
	bool method_named, fcntl_asked, range_asked, mode_given, fd_given, shell;
};

/* The options, for getopt_long(3), and what to say of one that it does not know. */
extern const struct option usage_options[];
extern const char usage_letters[];
noreturn void usage_refuse(int argc, char **argv);

/* Is WORD one of the options, alone: "-n", "--wait", "--wait=5"? */
bool usage_knows(const char *word);

/* Print the help, or the version, on standard output, and end the program with EXIT_SUCCESS, or with
 * EXIT_SYSTEM if the write fails. */
noreturn void usage_help(void);
noreturn void usage_version(bool as_flock);

#endif
