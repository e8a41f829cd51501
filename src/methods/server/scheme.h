/* SPDX-License-Identifier: MIT */
/* methods/server/scheme.h - recognises URLs, SCHEME://... */
#ifndef SEMLOCK_METHODS_SERVER_SCHEME_H
#define SEMLOCK_METHODS_SERVER_SCHEME_H

#include <stdbool.h>

#include "lock/method.h"

/* Room for the longest scheme, with its NUL. */
enum { SCHEME_SIZE = 32 };

/* Return the method for NAME if that is a URL, else NULL.  The method's name is the URL's scheme,
 * in lower case. */
const struct method *server_method(const char *name);

/* True if NAME is not a URL, but begins with the scheme of an installed helper and a colon. */
bool server_mistyped(const char *name);

#endif
