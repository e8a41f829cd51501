/* SPDX-License-Identifier: MIT */
/* sys/file_system.h - which file system a file is on, and whether only this kernel uses it. */
#ifndef SEMLOCK_SYS_FILE_SYSTEM_H
#define SEMLOCK_SYS_FILE_SYSTEM_H

#include <stdbool.h>
#include <sys/types.h>

enum file_system {
	FS_LOCAL,   /* no other kernel uses it */
	FS_NFS,     /* on an NFS server, where flock(2) of a file locks all its bytes, as fcntl(2)
	             * does; flock(2) of a directory only works among the processes of this
	             * kernel */
	FS_NETWORK, /* like FS_NFS, on another network file system: CIFS, 9p */
	FS_SHARED   /* other kernels may use it: FUSE, and any unknown type */
};

/* The kind of file system that FD's file is on (O_PATH is enough).  FS_SHARED if the kernel does
 * not say. */
enum file_system file_system_of(int fd);

/* Is FD's file on NFS?  If the file's device has a major number other than 0, the file is on a
 * disk, and this need not be called. */
bool file_system_nfs(int fd);

struct procfs_mount {
	int id;
	unsigned major, minor; /* of the file system, as /proc/locks names it */
	char point[256];       /* the mount point */
	char type[64];         /* ext4, nfs4 ... */
	char source[256];
	char options[1024]; /* of the mount, then of the file system */
};

/* Parse LINE of /proc/self/mountinfo.  Returns false if it is invalid. */
bool procfs_mount_line(const char *line, struct procfs_mount *mount);

/* Find the mount of FD's file.  Returns false if /proc does not have it. */
bool file_system_mount(int fd, struct procfs_mount *mount);

/* Do other machines use MOUNT's files without seeing the locks that this kernel grants on them: its
 * flocks if IS_FLOCK, else its record locks?  The first function judges by MOUNT's type and
 * options.  The second one returns true for a type that hides all locks, whatever its options. */
bool file_system_hides_locks(const struct procfs_mount *mount, bool is_flock);
bool file_system_hides_all_locks(const struct procfs_mount *mount);

/* Is MOUNT a FUSE file system that may keep kernel locks to itself, instead of passing them on to
 * the file system below?  (bindfs does so: its locks are seen on that mount only.) */
bool file_system_may_hide_locks(const struct procfs_mount *mount);

/* Set *MAJOR_NUMBER and *MINOR_NUMBER to the device that /proc/locks shows for FD's file.  On btrfs
 * and overlay that is not DEVICE, which fstat(2) returns for FD. */
void file_system_device(int fd, dev_t device, unsigned *major_number, unsigned *minor_number);

/* Refresh what fstat(2) and similar calls return for NAME in DIRECTORY, or for DIRECTORY if NAME is
 * empty: on a network file system, the kernel asks the server instead of its cache.  Returns 0, or
 * -1 with errno set: ENOSYS before Linux 4.11. */
int file_system_ask(int directory, const char *name);

#endif
