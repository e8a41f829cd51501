/* SPDX-License-Identifier: MIT */
/* fcntl(2) record locks, in their two kinds, which exclude each other.
 *
 * "posix": the lock belongs to the process.  A child does not inherit it; it is gone as soon as the
 * process closes any descriptor of that file, even one that a library opened for a moment; and
 * threads of one process do not exclude each other.  So semlock opens the file once, keeps that
 * descriptor to itself, and ties the command's life to its own.  Programs such as dpkg use this
 * kind.
 *
 * "ofd": the lock belongs to the open file description, like that of flock(2).
 *
 * A write lock needs a descriptor open for writing, a read lock one open for reading, and neither
 * works on a directory.  With -j, slot N is a write lock on byte N of the range: a lock of the
 * whole range waits for all slots. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "lock/lock.h"
#include "methods/kernel/kernel_methods.h"
#include "sys/deadline.h"
#include "sys/waiting.h"

static enum outcome outcome_of(int result)
{
	if (result == 0)
		return TAKEN;
	if (errno == EAGAIN || errno == EACCES || errno == EINTR)
		return BUSY;
	if (errno != EDEADLK)
		return FAILED;
	/* EDEADLK: the kernel's search for deadlocks ends at ten processes, and can be wrong.  No
	 * lock was taken: try again. */
	nap(10 * MILLISECOND);
	return BUSY;
}

static enum outcome lock_bytes(const struct lock *lock, enum wait wait, short type,
    struct range range)
{
	struct flock bytes = {
	    .l_type = type,
	    .l_whence = SEEK_SET,
	    .l_start = range.start,
	    .l_len = range.length,
	};
	const bool of_process = lock_can(lock, OWNED_BY_PROCESS);
	const int command = wait == TRY ? (of_process ? F_SETLK : F_OFD_SETLK)
	                                : (of_process ? F_SETLKW : F_OFD_SETLKW);
	int result;

	do { /* over NFS, a signal can interrupt even a try */
		result = fcntl(lock->fd, command, &bytes);
	} while (result != 0 && errno == EINTR && wait == TRY);
	return outcome_of(result);
}

static int fcntl_access(const struct lock *lock)
{
	return lock->spec->mode == EXCLUSIVE || lock->spec->slots > 0 ? O_WRONLY : O_RDONLY;
}

static enum outcome take_bytes(struct lock *lock, enum wait wait, short type, struct range range,
    struct error *error)
{
	const char *failed = lock->spec->slots > 0 ? "cannot lock a slot" : "cannot lock";
	enum outcome outcome = lock_bytes(lock, wait, type, range);

	if (outcome != FAILED)
		return outcome;
	if (errno == ENOLCK || errno == ENOMEM)
		return error_set(error, ERROR_SYSTEM, "%s", failed);
	if (errno == EBADF && S_ISDIR(lock->id.permissions))
		return error_plain(error, ERROR_LOCKABLE,
		    "a directory can have no fcntl lock and no slots: use -m flock, without -j");
	if (errno == EBADF && fcntl(lock->fd, F_GETFD) >= 0)
		return error_plain(error, ERROR_LOCKABLE,
		    fcntl_access(lock) == O_RDONLY
			? "a shared fcntl lock needs a descriptor open for reading"
			: "an exclusive fcntl lock, or a slot, needs a descriptor open for "
			  "writing");
	return error_set(error, ERROR_LOCKABLE, "%s", failed);
}

static enum outcome fcntl_take(struct lock *lock, enum wait wait, struct error *error)
{
	return take_bytes(lock, wait, lock->spec->mode == SHARED ? F_RDLCK : F_WRLCK,
	    lock->spec->range, error);
}

static int fcntl_drop(struct lock *lock, struct error *error)
{
	if (lock_bytes(lock, TRY, F_UNLCK, lock->spec->range) == TAKEN)
		return 0;
	return error_set(error, ERROR_LOCKABLE, "cannot unlock");
}

static struct range slot_byte(const struct lock *lock, unsigned slot)
{
	bool in_range = lock_can(lock, CAN_RANGE) && slot != SLOT_OF_COLLECTOR;
	off_t first = in_range ? lock->spec->range.start : FLOCK_FIRST_SLOT;

	return (struct range){first + (off_t)slot, 1};
}

enum outcome kernel_take_slot(struct lock *lock, unsigned slot, enum wait wait, struct error *error)
{
	return take_bytes(lock, wait, F_WRLCK, slot_byte(lock, slot), error);
}

void kernel_drop_slot(struct lock *lock, unsigned slot)
{
	lock_bytes(lock, TRY, F_UNLCK, slot_byte(lock, slot));
}

#define FCNTL_METHOD_FUNCTIONS \
	KERNEL_METHOD_FUNCTIONS, .access = fcntl_access, .take = fcntl_take, .drop = fcntl_drop

const struct method method_ofd = {
    .name = "ofd",
    .can = CAN_SHARE | CAN_SLOTS | CAN_RANGE | CAN_FD | CAN_MODE,
    FCNTL_METHOD_FUNCTIONS,
};

const struct method method_posix = {
    .name = "posix",
    .can = CAN_SHARE | CAN_SLOTS | CAN_RANGE | OWNED_BY_PROCESS | CAN_MODE,
    FCNTL_METHOD_FUNCTIONS,
};
