/* cli/reading.h - the command line while it is read: options.c (and usage.c), then operands.c, then
 * check_options.c.  Nonsense ends the program with EXIT_USAGE, and a message. */
#ifndef SEMLOCK_CLI_READING_H
#define SEMLOCK_CLI_READING_H

#include <stdnoreturn.h>

#include "cli/request.h"

/* What the command line says beside its request, to check it by. */
struct reading {
	enum lock_mode mode; /* of the next lock to be named */
	const char *name;    /* --name; NULL */
	int fd;              /* --fd */
	bool limited, kills; /* --run-timeout, --kill-after */
	bool acts;           /* an option that does not go with --who and --check */
	bool method_named, fcntl_asked, range_asked, mode_given, fd_given, shell;
};

/* WORDS, ended by NULL: LOCK and a command, or FD alone; behind --fd or --name, a command;
 * behind --hold, LOCK. */
void operands_read(struct request *request, const struct reading *reading, char **words);

/* Behind --who and --check: locks and nothing else. */
void operands_locks(struct request *request, const struct reading *reading, char **words);

/* Print the help, or the version, on standard output, and end the program with EXIT_SUCCESS, or with
 * EXIT_SYSTEM if the write fails. */
noreturn void usage_help(void);
noreturn void usage_version(bool as_flock);

/* Choose REQUEST's method, and refuse options that cannot be honoured together: none is ignored. */
void check_options(struct request *request, const struct reading *reading);

#endif
