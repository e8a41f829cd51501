/* owners/lock_scope.h - how far a lock on a file system reaches, from its type and mount options. */
#ifndef SEMLOCK_OWNERS_LOCK_SCOPE_H
#define SEMLOCK_OWNERS_LOCK_SCOPE_H

#include "sys/proc.h"

enum lock_scope {
	SCOPE_MACHINE,    /* the file system is this machine's own: there is nobody else */
	SCOPE_EVERYWHERE, /* locks go through the server, and exclude other machines as well */
	SCOPE_HERE_ONLY,  /* others use the files, and do not see our locks */
	SCOPE_UNKNOWN     /* others may use the files; the type does not say what they see */
};

/* For locks of KIND (KIND_FLOCK, or KIND_OFD and KIND_POSIX, which go the same way). */
enum lock_scope lock_scope_of(const struct procfs_mount *mount, unsigned kind);

/* For locks that are names in a directory: what makes and removes those is the server itself. */
enum lock_scope lock_scope_of_names(const struct procfs_mount *mount);

#endif
