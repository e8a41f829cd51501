/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <fcntl.h>
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

#ifndef SYS_statx /* older headers; the number depends on the architecture: do without the call */
#define SYS_statx -1
#endif

enum { NFS = 0x6969 };

static const struct {
	unsigned long magic;
	enum file_system kind;
} types[] = {
    {0xEF53, FS_LOCAL},                      /* ext2, 3, 4 */
    {0x58465342, FS_LOCAL},                  /* xfs */
    {0x9123683E, FS_LOCAL},                  /* btrfs */
    {0xCA451A4E, FS_LOCAL},                  /* bcachefs */
    {0xF2F52010, FS_LOCAL},                  /* f2fs */
    {0x2FC12FC1, FS_LOCAL},                  /* zfs */
    {0x01021994, FS_LOCAL},                  /* tmpfs */
    {0x858458F6, FS_LOCAL},                  /* ramfs */
    {0x794C7630, FS_LOCAL},                  /* overlay */
    {0x4D44, FS_LOCAL},                      /* FAT */
    {0x2011BAB0, FS_LOCAL},                  /* exFAT */
    {0x3153464A, FS_LOCAL},                  /* jfs */
    {0x52654973, FS_LOCAL},                  /* reiserfs */
    {0x3434, FS_LOCAL},                      /* nilfs2 */
    {NFS, FS_NFS}, {0xFF534D42, FS_NETWORK}, /* CIFS */
    {0xFE534D42, FS_NETWORK},                /* SMB 2, 3 */
    {0x01021997, FS_NETWORK},                /* 9p */
};

/* In mountinfo, the kernel writes a blank as "\040", and tab, newline and backslash in the same
 * way. */
static void unescape(char *text)
{
	char *to = text;

	for (; *text != '\0'; text++) {
		if (text[0] == '\\' && strspn(text + 1, "01234567") >= 3) {
			*to++ = (char)((text[1] - '0') * 64 + (text[2] - '0') * 8 + text[3] - '0');
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

/* Copy the next field of LINE (NULL: none) into FIELD (SIZE bytes), cut to fit.  Returns the rest
 * of LINE after the whole field, or NULL if there is no field. */
static const char *next_field(const char *line, char *field, size_t size)
{
	size_t length;

	if (line == NULL)
		return NULL;
	line += strspn(line, " ");
	length = strcspn(line, " \n");
	snprintf(field, size, "%.*s", length < size ? (int)length : (int)size - 1, line);
	return length > 0 ? line + length : NULL;
}

bool procfs_mount_line(const char *line, struct procfs_mount *mount)
{
	const char *dash = strstr(line, " - "), *rest;
	char of_mount[512], of_filesystem[512] = "";
	int read = 0;

	if (dash == NULL ||
	    sscanf(line, "%d %*d %u:%u %*s %n", &mount->id, &mount->major, &mount->minor, &read) !=
		3 ||
	    read == 0)
		return false;
	rest = next_field(line + read, mount->point, sizeof mount->point);
	if (next_field(rest, of_mount, sizeof of_mount) == NULL)
		return false;
	rest = next_field(dash + strlen(" - "), mount->type, sizeof mount->type);
	rest = next_field(rest, mount->source, sizeof mount->source);
	if (rest == NULL)
		return false;
	next_field(rest, of_filesystem, sizeof of_filesystem);
	unescape(mount->point);
	unescape(mount->source);
	snprintf(mount->options, sizeof mount->options, "%s,%s", of_mount, of_filesystem);
	return true;
}

bool file_system_mount(int fd, struct procfs_mount *mount)
{
	char path[64], text[1024], *line = NULL;
	bool found = false;
	size_t size = 0;
	FILE *mounts;
	int id = -1;

	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	if (process_file(path, text, sizeof text) > 0 && strstr(text, "\nmnt_id:") != NULL)
		sscanf(strstr(text, "\nmnt_id:"), "\nmnt_id: %d", &id);
	mounts = id < 0 ? NULL : fopen("/proc/self/mountinfo", "re");
	if (mounts == NULL)
		return false;
	while (!found && getline(&line, &size, mounts) > 0)
		found = procfs_mount_line(line, mount) && mount->id == id;
	free(line);
	fclose(mounts);
	return found;
}

/* May FD's file, which looks local, be on 9p?  There, fstatfs(2) returns the type of the server's
 * file system.  A kernel that can mount 9p lists it in /proc/filesystems. */
static bool may_be_9p(int fd)
{
	struct procfs_mount mount;
	struct stat status;
	char known[4096];

	if (fstat(fd, &status) == 0 && major(status.st_dev) != 0)
		return false; /* on a disk */
	if (process_file("/proc/filesystems", known, sizeof known) >= 0 &&
	    strstr(known, "\t9p\n") == NULL)
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
			return types[i].kind == FS_LOCAL && may_be_9p(fd) ? FS_NETWORK
			                                                  : types[i].kind;
	return FS_SHARED;
}

bool file_system_nfs(int fd)
{
	struct statfs status;

	return FAULT_POINT("file_system.nfs") ||
	       (fstatfs(fd, &status) == 0 && ((unsigned long)status.f_type & 0xFFFFFFFF) == NFS);
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
	const int ask =
	    0x2000 /* AT_STATX_FORCE_SYNC */ | 0x1000 /* AT_EMPTY_PATH */ | AT_SYMLINK_NOFOLLOW;
	const unsigned times = 0x40;  /* STATX_MTIME */
	_Alignas(8) char answer[256]; /* struct statx, which older headers lack */

	return (int)syscall(SYS_statx, directory, name, ask, times, answer);
}

static bool has_option(const struct procfs_mount *mount, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = mount->options; *at != '\0'; at += strspn(at, ",")) {
		if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0'))
			return true;
		at += strcspn(at, ",");
	}
	return false;
}

/* A lock on sshfs, or by default on virtiofs, stays in this kernel; QEMU's 9p server grants every
 * lock. */
bool file_system_hides_all_locks(const struct procfs_mount *mount)
{
	static const char *const hiding[] = {"9p", "virtiofs", "fuse.sshfs"};

	for (size_t i = 0; i < sizeof hiding / sizeof *hiding; i++)
		if (strcmp(mount->type, hiding[i]) == 0)
			return true;
	return false;
}

bool file_system_hides_locks(const struct procfs_mount *mount, bool is_flock)
{
	const char *type = mount->type;

	if (strcmp(type, "nfs") == 0 || strcmp(type, "nfs4") == 0)
		return has_option(mount, "local_lock=all") || has_option(mount, "nolock") ||
		       has_option(mount, is_flock ? "local_lock=flock" : "local_lock=posix");
	if (strcmp(type, "cifs") == 0 || strcmp(type, "smb3") == 0)
		return has_option(mount, "nobrl");
	if (strcmp(type, "lustre") == 0)
		return !has_option(mount, "flock");
	if (strcmp(type, "ocfs2") == 0)
		return is_flock && has_option(mount, "localflocks");
	if (strcmp(type, "ceph") == 0 || strcmp(type, "gfs2") == 0)
		return has_option(mount, "localflocks");
	return file_system_hides_all_locks(mount);
}

/* Type "fuseblk" never hides locks: its files are on a disk, which is reached through this mount
 * alone. */
bool file_system_may_hide_locks(const struct procfs_mount *mount)
{
	static const char handing_on[][sizeof "fuse.glusterfs"] = {"fuse.glusterfs",
	    "fuse.ceph-fuse", "fuse.juicefs"};

	for (size_t i = 0; i < sizeof handing_on / sizeof *handing_on; i++)
		if (strcmp(mount->type, handing_on[i]) == 0)
			return false;
	return strcmp(mount->type, "fuse") == 0 || strncmp(mount->type, "fuse.", 5) == 0;
}
