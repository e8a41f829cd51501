/* SPDX-License-Identifier: MIT */
/* methods/kernel/safe_open.h - following symbolic links that another user may have planted. */
#ifndef SEMLOCK_METHODS_KERNEL_SAFE_OPEN_H
#define SEMLOCK_METHODS_KERNEL_SAFE_OPEN_H

#include <limits.h>

#include "report/error.h"

/* Which links are followed.  LINKS_NOT_PLANTED: all, except that in a sticky directory which all
 * may write, such as /tmp, a link must belong to a user who could harm us anyway: ourselves, root,
 * or the directory's owner.  LINKS_OF_CALLER_AND_ROOT: in every directory, only ours and root's. */
enum links { LINKS_NOT_PLANTED, LINKS_OF_CALLER_AND_ROOT };

/* If the last component of NAME is a symbolic link, follow it, and the links that it leads to, and
 * write the path at their end into RESOLVED.  In a directory like /tmp, any user can plant a link
 * to make us open, and lock, another file.  So this refuses a link that FOLLOWED does not permit.
 *
 * Returns the flag with which to open RESOLVED, which may not exist: O_NOFOLLOW, or 0 if only the
 * kernel can follow its last link, such as /dev/fd/8.  Returns -1 with ERROR filled if a link is
 * refused or cannot be read. */
int safe_open_follow(const char *name, enum links followed, char resolved[PATH_MAX],
    struct error *error);

#endif
