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

static enum lock_scope scope_if_local(bool local)
{
	return local ? SCOPE_HERE_ONLY : SCOPE_EVERYWHERE;
}

static enum lock_scope nfs_scope(const struct procfs_mount *mount, unsigned kind)
{
	return scope_if_local(has_option(mount, "local_lock=all") || has_option(mount, "nolock") ||
			    has_option(mount, kind == KIND_FLOCK ? "local_lock=flock" : "local_lock=posix"));
}

static bool is_type_of(const char *type, const char *const types[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(type, types[i]) == 0)
			return true;
	return false;
}

static bool is_unknown(const char *type)
{
	static const char *const types[] = {"9p", "virtiofs", "vboxsf", "afs", "fuse", "fuseblk"};

	return strncmp(type, "fuse.", 5) == 0 || is_type_of(type, types, sizeof types / sizeof *types);
}

/* A lock on sshfs, or by default on virtiofs, stays in this kernel; the 9p server of QEMU grants every lock that it is
 * asked for. */
bool lock_scope_never_shared(const struct procfs_mount *mount)
{
	static const char *const types[] = {"9p", "virtiofs", "fuse.sshfs"};

	return is_type_of(mount->type, types, sizeof types / sizeof *types);
}

enum lock_scope lock_scope_of(const struct procfs_mount *mount, unsigned kind)
{
	const char *type = mount->type;

	if (lock_scope_never_shared(mount))
		return SCOPE_HERE_ONLY;
	if (strcmp(type, "nfs") == 0 || strcmp(type, "nfs4") == 0)
		return nfs_scope(mount, kind);
	if (strcmp(type, "cifs") == 0 || strcmp(type, "smb3") == 0)
		return scope_if_local(has_option(mount, "nobrl"));
	if (strcmp(type, "lustre") == 0)
		return scope_if_local(!has_option(mount, "flock"));
	if (strcmp(type, "ocfs2") == 0)
		return scope_if_local(kind == KIND_FLOCK && has_option(mount, "localflocks"));
	if (strcmp(type, "ceph") == 0 || strcmp(type, "gfs2") == 0)
		return scope_if_local(has_option(mount, "localflocks"));
	return is_unknown(type) ? SCOPE_UNKNOWN : SCOPE_MACHINE;
}

enum lock_scope lock_scope_of_names(const struct procfs_mount *mount)
{
	if (is_unknown(mount->type))
		return SCOPE_UNKNOWN;
	return lock_scope_of(mount, KIND_POSIX) == SCOPE_MACHINE ? SCOPE_MACHINE : SCOPE_EVERYWHERE;
}
