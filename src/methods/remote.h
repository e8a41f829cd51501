/* methods/remote.h - locks on a server, named by a URL. */
#ifndef SEMLOCK_METHOD_REMOTE_H
#define SEMLOCK_METHOD_REMOTE_H

#include "methods/method.h"

extern const struct method method_ftp;
extern const struct method method_etcd;

/* The method for the URL that NAME is, by its scheme; NULL: it is none. */
const struct method *remote_method(const char *name);

/* Ask the server of LOCK who holds it and who waits, and take nothing: calls SEE with CONTEXT
 * for each of them, WHO being what is told of it, WAITS whether it waits.  Returns 0, or -1
 * with WHY filled. */
int remote_ask(const struct lock *lock, void (*see)(const char *who, bool waits, void *context),
    void *context, struct why *why);

#endif
