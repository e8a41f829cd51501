/* SPDX-License-Identifier: MIT */
/* flock(2).
 *
 * The lock belongs to the open file description: a child that inherits the descriptor holds the
 * lock, too.  The lock is free when the last copy of the descriptor is closed, however its process
 * ended.  A slot (-j) is a shared flock, which excludes plain exclusive holders, and a record lock
 * of the same description on a byte beyond any program's data. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/file.h>

#include "methods/kernel/kernel_methods.h"
#include "lock/lock.h"

static int flock_access(const struct lock *lock)
{
	/* A script that locks itself cannot be executed while it is open for writing. */
	return lock->spec->slots > 0 ? O_RDWR : O_RDONLY;
}

static enum outcome explain_failed_flock(struct lock *lock, enum wait wait, struct error *error)
{
	int errnum = errno;

	switch (errnum) {
	case EWOULDBLOCK:
	case EINTR:
		return BUSY;
	case EACCES: /* on CIFS: the lock is held; elsewhere: a security module refuses */
		if (wait == TRY && lockfile_on_network(lock))
			return BUSY;
		errno = errnum;
		break;
	case EBADF:
	case EIO:
		/* On NFS, flock(2) is a record lock: an exclusive one needs a file open for
		 * writing. */
		if (lock->spec->name != NULL && lock->kernel.access == O_RDONLY &&
		    lock->spec->mode == EXCLUSIVE) {
			lock->kernel.access = O_RDWR;
			return AGAIN;
		}
		break;
	case ENOLCK:
	case ENOMEM:
		return error_set(error, ERROR_SYSTEM, "cannot lock");
	}
	return error_set(error, ERROR_LOCKABLE, "cannot lock");
}

static enum outcome flock_take(struct lock *lock, enum wait wait, struct error *error)
{
	int operation = lock->spec->mode == SHARED ? LOCK_SH : LOCK_EX;

	while (flock(lock->fd, wait == TRY ? operation | LOCK_NB : operation) != 0)
		/* over NFS, a signal can interrupt even a try */
		if (errno != EINTR || wait == SLEEP)
			return explain_failed_flock(lock, wait, error);
	return TAKEN;
}

static int flock_drop(struct lock *lock, struct error *error)
{
	struct flock slots = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = FLOCK_FIRST_SLOT};

	/* unlock all slots: which one a caller's descriptor holds is unknown */
	if (lock->spec->name == NULL)
		fcntl(lock->fd, F_OFD_SETLK, &slots);
	if (flock(lock->fd, LOCK_UN) != 0)
		return error_set(error, ERROR_LOCKABLE, "cannot unlock");
	return 0;
}

const struct method method_flock = {
    .name = "flock",
    .can = CAN_SHARE | CAN_FD | CAN_SLOTS | CAN_MODE,
    KERNEL_METHOD_FUNCTIONS,
    .access = flock_access,
    .take = flock_take,
    .drop = flock_drop,
};
