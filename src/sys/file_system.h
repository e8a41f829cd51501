/* SPDX-License-Identifier: MIT */
/* sys/file_system.h - which file system a file is on, and is that this kernel's alone? */
#ifndef SEMLOCK_SYS_FILE_SYSTEM_H
#define SEMLOCK_SYS_FILE_SYSTEM_H

#include <stdbool.h>
#include <sys/types.h>

enum file_system {
	FS_LOCAL, /* no other kernel uses it */
	FS_NFS, /* a server has it.  There flock(2) of a file locks all its bytes, as fcntl(2) does;
	         * of a directory it locks for this kernel alone */
	FS_NETWORK, /* the same on another network file system: CIFS, 9p */
	FS_SHARED   /* other kernels may use it: FUSE, and all that are not known here */
};

/* The kind of file system that the file of FD (O_PATH will do) is on.  Without an answer from the
 * system: FS_SHARED. */
enum file_system file_system_of(int fd);

/* Is FD's file on NFS?  A file whose device has a major number is on a disk: no need to ask. */
bool file_system_nfs(int fd);

struct procfs_mount {
	int id;
	unsigned major, minor; /* of the file system, as /proc/locks names it */
	char point[256];       /* the mount point */
	char type[64];         /* ext4, nfs4 ... */
	char source[256];
	char options[1024]; /* of the mount, then of the file system */
};

/* Read LINE of /proc/self/mountinfo.  Returns false if it is none. */
bool procfs_mount_line(const char *line, struct procfs_mount *mount);

/* Find the mount of FD's file.  Returns false where /proc does not tell. */
bool file_system_mount(int fd, struct procfs_mount *mount);

/* By its type and options: do other machines use the files of MOUNT without seeing a flock, or a
 * record lock, of this kernel?  The second: is it so of its type, whatever the options are? */
bool file_system_hides_locks(const struct procfs_mount *mount, bool is_flock);
bool file_system_hides_all_locks(const struct procfs_mount *mount);

/* Is MOUNT a FUSE file system of which it is not known that it hands the kernel locks on to
 * what lies behind it?  (bindfs, for one, does not: beside the mount they are not seen.) */
bool file_system_may_hide_locks(const struct procfs_mount *mount);

/* The device by which /proc/locks names FD's file, for which fstat(2) gives DEVICE.  On btrfs and
 * overlay the two differ. */
void file_system_device(int fd, dev_t device, unsigned *major_number, unsigned *minor_number);

/* Have the server, if there is one, say anew what fstat(2) and the like will answer for NAME in
 * DIRECTORY, or for DIRECTORY if NAME is empty.  Returns 0, or -1 with errno set: ENOSYS before
 * Linux 4.11. */
int file_system_ask(int directory, const char *name);

#endif
