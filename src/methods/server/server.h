/* SPDX-License-Identifier: MIT */
/* methods/server/server.h - locks on a server, named by a URL. */
#ifndef SEMLOCK_METHODS_SERVER_SERVER_H
#define SEMLOCK_METHODS_SERVER_SERVER_H

#include "lock/method.h"

/* Longer than any scheme, with its NUL. */
enum { SCHEME_SIZE = 32 };

/* The method of all schemes; server_method() gives it the scheme's name. */
extern const struct method method_on_server;

/* The method for NAME, a URL; its name is the scheme in small letters.  NULL: NAME is no URL. */
const struct method *server_method(const char *name);

/* True if NAME is no URL, but begins with the scheme of an installed helper and a colon. */
bool server_mistyped(const char *name);

/* Is called with CONTEXT for each line of an answer. */
typedef void (*server_line)(const char *line, void *context);

/* Ask the server of LOCK for its holders and waiters, and take nothing.  Returns 0, or -1 with
 * ERROR filled. */
int server_ask(const struct lock *lock, server_line hear, void *context, struct error *error);

/* How a helper holds a lock. */
enum inherited { INHERITED_EXCLUSIVE, INHERITED_SHARED, INHERITED_SLOT };

/* Has this process inherited the pipe of a helper that holds URL?  Returns its descriptor, with
 * MODE filled, or -1.  A helper whose descriptors /proc does not show is none. */
int server_inherited(const char *url, enum inherited *mode);

#endif
