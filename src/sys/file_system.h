/* SPDX-License-Identifier: MIT */
/* sys/file_system.h - which file system a file is on, and whether only this kernel uses it. */
#ifndef SEMLOCK_SYS_FILE_SYSTEM_H
#define SEMLOCK_SYS_FILE_SYSTEM_H

#include <stdbool.h>
#include <sys/types.h>

enum file_system {
	FS_LOCAL,   /* no other kernel uses it */
	FS_NFS,     /* on a server.  There flock(2) of a file locks all its bytes, like fcntl(2); of
	         * a directory, it locks for this kernel alone */
	FS_NETWORK, /* the same on another network file system: CIFS, 9p */
	FS_SHARED   /* other kernels may use it: FUSE, and any unknown type */
};

/* The kind of file system that FD's file is on (O_PATH is enough).  FS_SHARED if the kernel does
 * not say. */
enum file_system file_system_of(int fd);

/* Is FD's file on NFS?  Not needed for a file whose device has a major number: that is on a
 * disk. */
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

/* By MOUNT's type and options, do other machines use its files without seeing this kernel's flocks
 * (IS_FLOCK), or its record locks?  The second function: is that so for its type, whatever the
 * options? */
bool file_system_hides_locks(const struct procfs_mount *mount, bool is_flock);
bool file_system_hides_all_locks(const struct procfs_mount *mount);

/* Is MOUNT a FUSE file system that may keep kernel locks to itself, instead of passing them on to
 * the file system below?  (bindfs does so: its locks are seen on that mount only.) */
bool file_system_may_hide_locks(const struct procfs_mount *mount);

/* The device number that /proc/locks uses for FD's file, for which fstat(2) returns DEVICE.  The
 * two differ on btrfs and overlay. */
void file_system_device(int fd, dev_t device, unsigned *major_number, unsigned *minor_number);

/* Make the server, if there is one, refresh what fstat(2) and similar calls return for NAME in
 * DIRECTORY, or for DIRECTORY if NAME is empty.  Returns 0, or -1 with errno set: ENOSYS before
 * Linux 4.11. */
int file_system_ask(int directory, const char *name);

#endif
