/* owners/check.h - --check: does a lock really exclude in this place? */
#ifndef SEMLOCK_OWNERS_CHECK_H
#define SEMLOCK_OWNERS_CHECK_H

#include "cli/options.h"

/* For a URL: have tried on the server what its locks rely on, a line each; else:
 * Try each method that uses the kernel's locks on a file beside the lock, which itself is left alone, and print what came
 * of it, a line each.  Returns 0 when the method of REQUEST excludes, EXIT_UNAVAILABLE when it
 * does not, or the status of the trouble that there was. */
int check(const struct request *request);

#endif
