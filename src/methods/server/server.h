/* methods/server/server.h - locks on a server, named by a URL. */
#ifndef SEMLOCK_METHODS_SERVER_SERVER_H
#define SEMLOCK_METHODS_SERVER_SERVER_H

#include "lock/method.h"

/* Longer than any scheme, with its NUL. */
enum { SCHEME_SIZE = 32 };

/* What all of them are; the name is the scheme's, see server_method(). */
extern const struct method method_on_server;

/* The method for the URL that NAME is, called by its scheme in small letters; NULL: it is none. */
const struct method *server_method(const char *name);

/* Does NAME begin with the scheme of an installed helper and a colon, and is no URL? */
bool server_mistyped(const char *name);

/* Is called with CONTEXT for each line of an answer. */
typedef void (*server_line)(const char *line, void *context);

/* Ask the server of LOCK: WHAT, "--who" or "--check", of semlock-locksmith(7), and take nothing.
 * Returns 0, or -1 with ERROR filled. */
int server_ask(const struct lock *lock, const char *what, server_line hear, void *context,
    struct error *error);

#endif
