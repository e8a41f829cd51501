/* owners/check.h - --check: does a lock really exclude in this place? */
#ifndef SEMLOCK_OWNERS_CHECK_H
#define SEMLOCK_OWNERS_CHECK_H

#include "cli/options.h"

/* Try each method of the kernel's and of files on a scratch file beside the lock, which is left alone;
 * or have the helper try what locks on a server rely on.  Print the results, a line each.  Returns 0
 * when the method of REQUEST excludes, EXIT_UNAVAILABLE when it does not, or the status of an error. */
int check(const struct request *request);

#endif
