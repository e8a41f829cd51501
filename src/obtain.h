/* obtain.h - taking the locks as the command line says, and telling who wants to know. */
#ifndef SEMLOCK_OBTAIN_H
#define SEMLOCK_OBTAIN_H

#include <stdbool.h>

#include "lock.h"
#include "options.h"

enum { OBTAINED = -1 };

/* Take the LOCKS of OPTIONS.  Returns OBTAINED, or the status to exit with, and then all has
 * been said.  *UNDER_ANCESTOR: nothing was taken, for an ancestor holds it already, and
 * --nested was given. */
int obtain(const struct options *options, struct lock *locks, bool *under_ancestor);

/* What LOCK is called where people read it. */
const char *obtain_label(const struct options *options, const struct lock *lock);

#endif
