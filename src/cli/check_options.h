/* cli/check_options.h - which options go together, and with which method. */
#ifndef SEMLOCK_CLI_CHECK_OPTIONS_H
#define SEMLOCK_CLI_CHECK_OPTIONS_H

#include <stdbool.h>

#include "cli/options.h"

/* What the command line has said on the way, beside the options it set. */
struct reading {
	enum mode mode; /* of the next lock to be named */
	const char *name; /* --name; NULL */
	bool limited, kills; /* --run-timeout, --kill-after */
	bool acts; /* an option that is about taking the lock, or about a command */
	bool method_named, fcntl_asked, range_asked, mode_given, fd_given, shell;
	int fd;
};

/* Settle the method, and refuse what cannot be honoured: with a sentence, and EXIT_USAGE.
 * Nothing is ever ignored. */
void rules_apply(struct request *request, const struct reading *reading);

#endif
