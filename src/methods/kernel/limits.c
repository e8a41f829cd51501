#include <config.h>

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "methods/kernel/limits.h"
#include "sys/lock_scope.h"
#include "sys/file_system.h"

bool limits_of_network(const struct lock *lock)
{
	enum file_system kind = file_system_of(lock->fd);

	return kind == FS_NFS || kind == FS_NETWORK;
}

/* Another client may find the name in its cache, with the removed file behind it: a lock that it takes on
 * that file would stand beside one on the name's next file. */
static int check_removal(const struct lock *lock, struct error *error)
{
	if (!lock->spec->to_be_removed || file_system_of(lock->fd) == FS_LOCAL)
		return 0;
	return error_say(error, ERROR_UNAVAILABLE,
	    "--rm: other machines may use this file system, and may see a removed file for a while: leave out --rm");
}

static int check_flock(const struct lock *lock, struct error *error)
{
	if (S_ISDIR(lock->id.permissions) && limits_of_network(lock))
		return error_say(error, ERROR_LOCKABLE,
		    "on a network file system a directory is locked for this machine alone: lock a file");
	if (lock->spec->slots > 0 && limits_of_network(lock))
		return error_say(error, ERROR_UNAVAILABLE,
		    "-j: on a network file system the slots of flock exclude each other: use -m ofd");
	return 0;
}

/* A file system of a disk, or of a type that is known, is not looked for in mountinfo. */
static int check_scope(const struct lock *lock, struct error *error)
{
	enum file_system kind = major(lock->id.device) != 0 ? FS_LOCAL : file_system_of(lock->fd);
	struct procfs_mount mount;

	if ((kind != FS_NETWORK && kind != FS_SHARED) || !file_system_mount(lock->fd, &mount) ||
	    !lock_scope_never_shared(&mount))
		return 0;
	return error_say(error, ERROR_UNAVAILABLE,
	    "on %s, other machines do not see a lock of the kernel: use -m mkdir", mount.type);
}

int limits_check(const struct lock *lock, struct error *error)
{
	if (check_scope(lock, error) != 0 || check_removal(lock, error) != 0)
		return -1;
	return (lock->spec->method->can & CAN_RANGE) == 0 ? check_flock(lock, error) : 0;
}
