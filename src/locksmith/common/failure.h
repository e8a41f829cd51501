/* SPDX-License-Identifier: MIT */
/* locksmith/common/failure.h - the message and the exit status of a failure, filled in where it happens. */
#ifndef SEMLOCK_LOCKSMITH_COMMON_FAILURE_H
#define SEMLOCK_LOCKSMITH_COMMON_FAILURE_H

#include "report/exitcode.h"

#include <stdbool.h>

/* The exit statuses of a helper: this one, and semlock's own. */
enum { EXIT_RELEASED = 0 };

struct failure {
	int status;	/* one of the above */
	bool away;	/* the server does not answer, but may later */
	char text[400]; /* one line without a newline */
};

/* Fills in *failure; control characters in the text become '?'. Returns -1. */
int failure_fill(struct failure *failure, int status, bool away, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
#define failure_set(failure, status, ...) failure_fill(failure, status, false, __VA_ARGS__)

/* The same for EXIT_UNAVAILABLE where another try may help: refused, silent, without a leader. */
#define failure_away(failure, ...) failure_fill(failure, EXIT_UNAVAILABLE, true, __VA_ARGS__)

/* Replaces control characters in text by '?': a server's text must not become a line of the protocol. */
void failure_clean(char *text);

#endif
