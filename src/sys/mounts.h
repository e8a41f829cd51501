/* sys/mounts.h - which file system a descriptor's file is on. */
#ifndef SEMLOCK_SYS_MOUNTS_H
#define SEMLOCK_SYS_MOUNTS_H

#include <stdbool.h>
#include <sys/types.h>

#include "sys/proc.h"

/* Find the mount of FD's file.  Returns false where /proc does not tell. */
bool mounts_find(int fd, struct procfs_mount *mount);

/* The device by which /proc/locks names FD's file, for which fstat(2) gives DEVICE.  On btrfs and overlay
 * the two differ. */
void mounts_device(int fd, dev_t device, unsigned *major_number, unsigned *minor_number);

#endif
