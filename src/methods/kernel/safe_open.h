/* SPDX-License-Identifier: MIT */
/* methods/kernel/safe_open.h - following symbolic links that another user may have planted. */
#ifndef SEMLOCK_METHODS_KERNEL_SAFE_OPEN_H
#define SEMLOCK_METHODS_KERNEL_SAFE_OPEN_H

#include <limits.h>

#include "report/error.h"

/* Follow the symbolic links from the last component of NAME on, and put the path at their end into
 * RESOLVED.  In a directory like /tmp, any user can plant a link to make us open, and lock, another
 * file.  There a link counts only if its owner could harm us anyway: ourselves, root, or the
 * directory's owner.  Returns how RESOLVED must be opened, which may not exist: O_NOFOLLOW, or 0
 * for a link that only the kernel can follow, as /dev/fd/8; -1 with ERROR filled. */
int safe_open_follow(const char *name, char resolved[PATH_MAX], struct error *error);

#endif
