/* mounts.h - which file system a descriptor's file is on. */
#ifndef SEMLOCK_MOUNTS_H
#define SEMLOCK_MOUNTS_H

#include <stdbool.h>

#include "procfs.h"

/* Find the mount of FD's file.  Returns false where the system does not tell. */
bool mounts_find(int fd, struct procfs_mount *mount);

#endif
