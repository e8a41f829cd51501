/* SPDX-License-Identifier: MIT */
/* methods/kernel/safe_open.h - following symbolic links that another user may have planted. */
#ifndef SEMLOCK_METHODS_KERNEL_SAFE_OPEN_H
#define SEMLOCK_METHODS_KERNEL_SAFE_OPEN_H

#include <limits.h>

#include "report/error.h"

/* Which links are followed.  NOT_PLANTED: all, but in a directory like /tmp only those of a user
 * who could harm us anyway: ourselves, root, or the directory's owner.  OF_CALLER_AND_ROOT: only
 * ours and root's, everywhere. */
enum links { LINKS_NOT_PLANTED, LINKS_OF_CALLER_AND_ROOT };

/* Follow the symbolic links from the last component of NAME on, and put the path at their end into
 * RESOLVED.  In a directory like /tmp, any user can plant a link to make us open, and lock, another
 * file: only those that FOLLOWED permits are followed.  Returns how to open RESOLVED, which may not
 * exist: O_NOFOLLOW, or 0 for a link that only the kernel can follow, as /dev/fd/8; -1 with ERROR
 * filled. */
int safe_open_follow(const char *name, enum links followed, char resolved[PATH_MAX],
    struct error *error);

#endif
