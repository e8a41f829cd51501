/* A kernel lock on NFS 4 is a lease: the server gives it to another machine when it has not heard of this
 * one for too long.  This kernel goes on listing it, but no longer reads the file through a descriptor
 * whose lock is lost (EIO), and fcntl(2) asks the server for a lock that stands in the way of ours. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#include "lock/lock.h"
#include "sys/lock_scope.h"
#include "methods/kernel/kernel_methods.h"
#include "sys/file_system.h"
#include "sys/retry.h"

static bool has_lease(const struct lock *lock)
{
	struct procfs_mount mount;

	if (!file_system_nfs(lock->fd, lock->id.device))
		return false;
	return !file_system_mount(lock->fd, &mount) ||
	       lock_scope_of(&mount, (lock->spec->method->can & CAN_RANGE) == 0 ? KIND_FLOCK : KIND_POSIX) !=
		   SCOPE_HERE_ONLY;
}

/* O_DIRECT: of an empty file, or one in a cache, nothing else asks the server. */
static bool is_unreadable(int fd)
{
	static _Alignas(4096) char page[4096];
	int flags = fcntl(fd, F_GETFL);
	ssize_t got;

	if (flags < 0 || (flags & O_ACCMODE) == O_WRONLY || fcntl(fd, F_SETFL, flags | O_DIRECT) != 0)
		return false;
	UNINTERRUPTED(got, pread(fd, page, sizeof page, 0));
	fcntl(fd, F_SETFL, flags);
	return got < 0 && errno == EIO;
}

static bool is_anothers(const struct lock *lock)
{
	struct flock bytes = {
	    .l_type = lock->spec->mode == SHARED ? F_RDLCK : F_WRLCK,
	    .l_whence = SEEK_SET,
	    .l_start = lock->spec->range.start + (lock->slot > 0 ? lock->slot : 0),
	    .l_len = lock->slot >= 0 ? 1 : lock->spec->range.length,
	};
	int command = (lock->spec->method->can & OWNED_BY_PROCESS) != 0 ? F_GETLK : F_OFD_GETLK, result;

	UNINTERRUPTED(result, fcntl(lock->fd, command, &bytes));
	return result == 0 && bytes.l_type != F_UNLCK;
}

bool kernel_lock_owned(struct lock *lock)
{
	return lock->fd < 0 || lock->place.covered || !has_lease(lock) || !(is_unreadable(lock->fd) || is_anothers(lock));
}
