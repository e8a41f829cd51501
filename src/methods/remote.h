/* methods/remote.h - locks on a server, named by a URL. */
#ifndef SEMLOCK_METHOD_REMOTE_H
#define SEMLOCK_METHOD_REMOTE_H

#include "methods/method.h"

extern const struct method method_ftp;
extern const struct method method_etcd;

/* The method for the URL that NAME is, by its scheme; NULL: it is none. */
const struct method *remote_method(const char *name);

/* Ask the server of LOCK: WHAT, "--who" or "--check", of semlock-locksmith(8), and take nothing.
 * Calls HEAR with CONTEXT for each line of the answer.  Returns 0, or -1 with WHY filled. */
int remote_ask(const struct lock *lock, const char *what, void (*hear)(const char *line, void *context),
    void *context, struct why *why);

#endif
