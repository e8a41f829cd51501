/* SPDX-License-Identifier: MIT */
/* methods/server/server_inherited.h - does this process run under a lock on a server?  The command
 * of such a lock inherits the write end of the helper's input. */
#ifndef SEMLOCK_METHODS_SERVER_SERVER_INHERITED_H
#define SEMLOCK_METHODS_SERVER_SERVER_INHERITED_H

/* How a helper holds a lock. */
enum inherited { INHERITED_EXCLUSIVE, INHERITED_SHARED, INHERITED_SLOT };

/* Has this process inherited the pipe of a helper that holds URL?  Returns its descriptor, with
 * MODE filled, or -1.  A helper whose descriptors /proc does not show is not found. */
int server_inherited(const char *url, enum inherited *mode);

#endif
