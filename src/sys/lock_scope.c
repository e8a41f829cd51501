/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stddef.h>
#include <string.h>

#include "sys/lock_scope.h"

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

/* A lock on sshfs, or by default on virtiofs, stays in this kernel; the 9p server of QEMU grants every lock that it is
 * asked for. */
bool lock_scope_never_shared(const struct procfs_mount *mount)
{
	static const char *const types[] = {"9p", "virtiofs", "fuse.sshfs"};

	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (strcmp(mount->type, types[i]) == 0)
			return true;
	return false;
}

bool lock_scope_here_only(const struct procfs_mount *mount, unsigned kind)
{
	const char *type = mount->type;

	if (strcmp(type, "nfs") == 0 || strcmp(type, "nfs4") == 0)
		return has_option(mount, "local_lock=all") || has_option(mount, "nolock") ||
		       has_option(mount, kind == KIND_FLOCK ? "local_lock=flock" : "local_lock=posix");
	if (strcmp(type, "cifs") == 0 || strcmp(type, "smb3") == 0)
		return has_option(mount, "nobrl");
	if (strcmp(type, "lustre") == 0)
		return !has_option(mount, "flock");
	if (strcmp(type, "ocfs2") == 0)
		return kind == KIND_FLOCK && has_option(mount, "localflocks");
	if (strcmp(type, "ceph") == 0 || strcmp(type, "gfs2") == 0)
		return has_option(mount, "localflocks");
	return lock_scope_never_shared(mount);
}
