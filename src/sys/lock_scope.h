/* SPDX-License-Identifier: MIT */
/* sys/lock_scope.h - do other machines see a lock of the kernel on a file system?  By its type and mount options. */
#ifndef SEMLOCK_SYS_LOCK_SCOPE_H
#define SEMLOCK_SYS_LOCK_SCOPE_H

#include <stdbool.h>

#include "sys/proc.h"

/* Do other machines use the files of MOUNT without seeing locks of KIND?  KIND_OFD and KIND_POSIX are treated alike. */
bool lock_scope_here_only(const struct procfs_mount *mount, unsigned kind);

/* Is MOUNT of a type whose kernel locks other machines never see, whatever its options are? */
bool lock_scope_never_shared(const struct procfs_mount *mount);

#endif
