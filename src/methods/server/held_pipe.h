/* SPDX-License-Identifier: MIT */
/* methods/server/held_pipe.h - the lock on a server under which this process runs: it has inherited the write end of
 * the input of the helper that holds the lock. */
#ifndef SEMLOCK_METHODS_SERVER_HELD_PIPE_H
#define SEMLOCK_METHODS_SERVER_HELD_PIPE_H

#include <stdbool.h>

struct held_pipe {
	int fd; /* this process's end */
	enum { PIPE_OF_EXCLUSIVE, PIPE_OF_SHARED, PIPE_OF_SLOT } mode; /* how the helper holds the lock */
};

/* Fill PIPE if this process has inherited the pipe of a helper whose last argument is URL, and return true.  A helper
 * whose descriptors /proc does not show is none. */
bool held_pipe_inherited(const char *url, struct held_pipe *pipe);

#endif
