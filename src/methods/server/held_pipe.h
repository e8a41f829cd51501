/* methods/server/held_pipe.h - the pipe by whose write end a lock on a server is held: semlock, the command and
 * what they have started have that end open, semlock-locksmith reads the other. */
#ifndef SEMLOCK_METHODS_SERVER_HELD_PIPE_H
#define SEMLOCK_METHODS_SERVER_HELD_PIPE_H

#include <sys/types.h>

#include "sys/open_fds.h"

/* The outermost of this process and its ancestors through whom the lock URL, so written, is held
 * by the pipe PIPE at this moment; 0: there is none.  Where the helper may not be looked into,
 * it is the one that started it. */
pid_t held_pipe_ancestor(const char *url, const struct identity *pipe);

#endif
