/* sys/lock_scope.h - which machines a lock on a file system excludes, by its type and mount options. */
#ifndef SEMLOCK_SYS_LOCK_SCOPE_H
#define SEMLOCK_SYS_LOCK_SCOPE_H

#include <stdbool.h>

#include "sys/proc.h"

enum lock_scope {
	SCOPE_MACHINE,    /* no other machine uses the file system */
	SCOPE_EVERYWHERE, /* the server keeps the locks: other machines are excluded as well */
	SCOPE_HERE_ONLY,  /* other machines use the files and do not see the locks */
	SCOPE_UNKNOWN     /* other machines may use the files; what they see is not known */
};

/* For kernel locks of KIND; KIND_OFD and KIND_POSIX go the same way. */
enum lock_scope lock_scope_of(const struct procfs_mount *mount, unsigned kind);

/* Is MOUNT of a type whose kernel locks other machines never see, whatever its options are? */
bool lock_scope_never_shared(const struct procfs_mount *mount);

/* For locks made of files: the server itself makes and removes names. */
enum lock_scope lock_scope_of_names(const struct procfs_mount *mount);

#endif
