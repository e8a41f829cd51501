/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "sys/crash_points.h"
#include "sys/file_system.h"
#include "sys/process.h"

#ifndef SYS_statx /* its number differs by architecture: treat it as unknown to the kernel */
#define SYS_statx -1
#endif

enum { NFS = 0x6969 };

static const struct {
	unsigned long magic;
	enum file_system kind;
} types[] = {
    {0xEF53, FS_LOCAL},     /* ext2, 3, 4 */
    {0x58465342, FS_LOCAL}, /* xfs */
    {0x9123683E, FS_LOCAL}, /* btrfs */
    {0xCA451A4E, FS_LOCAL}, /* bcachefs */
    {0xF2F52010, FS_LOCAL}, /* f2fs */
    {0x2FC12FC1, FS_LOCAL}, /* zfs */
    {0x01021994, FS_LOCAL}, /* tmpfs */
    {0x858458F6, FS_LOCAL}, /* ramfs */
    {0x794C7630, FS_LOCAL}, /* overlay */
    {0x4D44, FS_LOCAL},     /* FAT */
    {0x2011BAB0, FS_LOCAL}, /* exFAT */
    {0x3153464A, FS_LOCAL}, /* jfs */
    {0x52654973, FS_LOCAL}, /* reiserfs */
    {0x3434, FS_LOCAL},     /* nilfs2 */
    {NFS, FS_NFS},
    {0xFF534D42, FS_NETWORK}, /* CIFS */
    {0xFE534D42, FS_NETWORK}, /* SMB 2, 3 */
    {0x01021997, FS_NETWORK}, /* 9p */
};

bool file_system_mount(int fd, struct procfs_mount *mount)
{
	char path[64], text[1024], *line = NULL;
	bool found = false;
	size_t size = 0;
	FILE *mounts;
	int id;

	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	id = process_file(path, text, sizeof text) < 0 ? -1 : procfs_mount_id(text);
	mounts = id < 0 ? NULL : fopen("/proc/self/mountinfo", "re");
	if (mounts == NULL)
		return false;
	while (!found && getline(&line, &size, mounts) > 0)
		found = procfs_mount_line(line, mount) && mount->id == id;
	free(line);
	fclose(mounts);
	return found;
}

/* On 9p, fstatfs(2) answers with the type of the file system that the server has.  The kernel lists 9p
 * in /proc/filesystems before anything of that type can be mounted. */
static bool may_be_9p(int fd)
{
	struct procfs_mount mount;
	struct stat status;
	char known[4096];

	if (fstat(fd, &status) == 0 && major(status.st_dev) != 0)
		return false; /* on a disk */
	if (process_file("/proc/filesystems", known, sizeof known) >= 0 && strstr(known, "\t9p\n") == NULL)
		return false;
	return !file_system_mount(fd, &mount) || strcmp(mount.type, "9p") == 0;
}

enum file_system file_system_of(int fd)
{
	struct statfs status;

	if (FAULT_POINT("file_system.nfs"))
		return FS_NFS;
	if (FAULT_POINT("file_system.shared") || fstatfs(fd, &status) != 0)
		return FS_SHARED;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (((unsigned long)status.f_type & 0xFFFFFFFF) == types[i].magic)
			return types[i].kind == FS_LOCAL && may_be_9p(fd) ? FS_NETWORK : types[i].kind;
	return FS_SHARED;
}

bool file_system_nfs(int fd, dev_t device)
{
	struct statfs status;

	return FAULT_POINT("file_system.nfs") ||
	       (major(device) == 0 && fstatfs(fd, &status) == 0 &&
		((unsigned long)status.f_type & 0xFFFFFFFF) == NFS);
}

void file_system_device(int fd, dev_t device, unsigned *major_number, unsigned *minor_number)
{
	struct procfs_mount mount;

	*major_number = major(device);
	*minor_number = minor(device);
	if (*major_number == 0 && file_system_mount(fd, &mount)) {
		*major_number = mount.major;
		*minor_number = mount.minor;
	}
}

int file_system_ask(int directory, const char *name)
{
	const int ask = 0x2000 /* AT_STATX_FORCE_SYNC */ | 0x1000 /* AT_EMPTY_PATH */ | AT_SYMLINK_NOFOLLOW;
	const unsigned times = 0x40; /* STATX_MTIME */
	_Alignas(8) char answer[256]; /* struct statx, which older headers lack */

	return (int)syscall(SYS_statx, directory, name, ask, times, answer);
}
