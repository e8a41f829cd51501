/* methods/server/held_pipe.h - which ancestor holds a lock on a server: semlock, the command
 * and their descendants have the write end of the helper's input open. */
#ifndef SEMLOCK_METHODS_SERVER_HELD_PIPE_H
#define SEMLOCK_METHODS_SERVER_HELD_PIPE_H

#include <sys/types.h>

#include "sys/open_fds.h"

/* Returns the PID of the outermost of this process and its ancestors that has PIPE open, if a helper
 * with the last argument URL reads PIPE; else 0.  Where /proc does not show the helper's
 * descriptors, returns the helper's parent, if that is an ancestor. */
pid_t held_pipe_ancestor(const char *url, const struct identity *pipe);

#endif
