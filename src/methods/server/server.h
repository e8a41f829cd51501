/* SPDX-License-Identifier: MIT */
/* methods/server/server.h - locks on a server, named by a URL: a helper acquires, keeps and
 * releases them (locksmith.h). */
#ifndef SEMLOCK_METHODS_SERVER_SERVER_H
#define SEMLOCK_METHODS_SERVER_SERVER_H

#include "lock/method.h"
#include "report/text.h"

/* The method for locks on servers.  server_method() (scheme.h) returns a copy of it for each
 * scheme. */
extern const struct method method_on_server;

/* Called with CONTEXT for each line of an answer. */
typedef void (*server_line)(const char *line, void *context);

/* Ask the server of LOCK for its holders and waiters, and take nothing.  Returns 0, or -1 with
 * ERROR filled. */
int server_ask(const struct lock *lock, server_line hear, void *context, struct error *error);

/* Read TEXT, a server's note on a holder: put the --note of that holder into NOTE, "" if it has
 * none.  Returns the command, the rest of TEXT. */
const char *server_note_read(const char *text, char note[NOTE_SIZE]);

#endif
