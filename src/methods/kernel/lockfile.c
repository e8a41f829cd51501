/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lock/attempt.h"
#include "lock/lock.h"
#include "lock/queue.h"
#include "lock/slots.h"
#include "methods/kernel/lockfile.h"
#include "methods/kernel/safe_open.h"
#include "sys/crash_points.h"
#include "sys/file_system.h"
#include "sys/files.h"

/* O_NONBLOCK: open(2) of a FIFO without a writer would block.  O_NOCTTY: a terminal must not become
 * our controlling terminal.  Never O_TRUNC: the file may be somebody's data.  If the command
 * inherits the descriptor, leave out O_CLOEXEC, which saves a later call: with a kernel lock, we
 * execute no other program than the command. */
static int open_flags(const struct lock *lock)
{
	bool inherited = lock->child != NULL && lock->child->inherits;

	return lock->kernel.access | O_NOCTTY | O_NONBLOCK | (inherited ? 0 : O_CLOEXEC);
}

static int open_failed(struct error *error, const char *what)
{
	switch (errno) {
	case ENOMEM:
	case EMFILE:
	case ENFILE:
		return error_set(error, ERROR_SYSTEM, "%s", what);
	case EROFS:
	case ENOSPC:
	case EDQUOT:
		return error_set(error, ERROR_CREATE, "%s", what);
	case ENXIO:
		return error_plain(error, ERROR_OPEN,
		    "cannot lock a socket, a FIFO, or a device without a driver");
	}
	return error_set(error, ERROR_OPEN, "%s", what);
}

static int create_file(struct lock *lock, const char *path, int flags, struct error *error)
{
	int fd =
	    openat(AT_FDCWD, path, flags | O_CREAT | O_EXCL | O_NOFOLLOW, lock->spec->create_mode);
	const char *directory;
	char space[PATH_MAX];

	if (fd < 0) {
		if (errno == EISDIR)
			error_plain(error, ERROR_OPEN,
			    "no such directory (its name ends in a slash)");
		else if (errno == ENOENT) {
			/* The directory can exist and refuse new files: /dev/fd, or a directory
			 * that has been removed. */
			directory = path_directory(path, space);
			error_plain(error, ERROR_OPEN,
			    directory != NULL && access(directory, F_OK) == 0
				? "does not exist, and no file can be created in its directory"
				: "cannot create: its directory does not exist");
		} else if (errno != EEXIST && errno != EINTR)
			open_failed(error, "cannot create");
		return -1;
	}
	CRASH_POINT("lockfile.created");
	lock->kernel.made = true;
	if (lock->spec->exact_mode && fchmod(fd, lock->spec->create_mode) != 0) {
		error_set(error, ERROR_CREATE, "cannot set the mode");
		close(fd);
		return -1;
	}
	return fd;
}

/* K1: open the file, or create it.  Try first without O_CREAT, then with O_CREAT and O_EXCL: with
 * O_CREAT alone, fs.protected_regular keeps even root from opening another user's file in a sticky
 * directory.  Sets *IS_LINK if PATH is a symbolic link, which the caller must check.  Returns -1
 * with no error in ERROR if the caller is to try again.  (openat: musl's open makes a second system
 * call for O_CLOEXEC.) */
static int open_or_create(struct lock *lock, const char *path, int flags, bool *is_link,
    struct error *error)
{
	int fd = openat(AT_FDCWD, path, flags | O_NOFOLLOW);

	*is_link = fd < 0 && (errno == ELOOP || errno == EMLINK);
	if (fd >= 0 || *is_link)
		return fd;
	if (errno == ENOENT)
		return create_file(lock, path, flags, error);
	if (errno == EACCES && lock->kernel.access != O_RDONLY)
		error_set(error, ERROR_OPEN, "cannot open for writing, which this lock requires");
	else if (errno == EISDIR)
		error_plain(error, ERROR_LOCKABLE,
		    "is a directory, and cannot be opened for writing, which this lock requires");
	else if (errno != EINTR)
		open_failed(error, "cannot open");
	return -1;
}

/* Open LOCK's name, whose last component is a symbolic link. */
static int open_through_link(struct lock *lock, int flags, struct error *error)
{
	char path[PATH_MAX];
	int how, fd;
	bool is_link;

	how = safe_open_follow(lock->spec->name, LINKS_NOT_PLANTED, path, error);
	if (how < 0)
		return -1;
	if (how == O_NOFOLLOW)
		return open_or_create(lock, path, flags, &is_link, error);
	fd = open(path, flags);
	if (fd < 0)
		open_failed(error, "cannot open");
	return fd;
}

/* ---- what a kernel lock cannot promise on some file systems ---- */

bool lockfile_on_network(const struct lock *lock)
{
	enum file_system kind = file_system_of(lock->fd);

	return kind == FS_NFS || kind == FS_NETWORK;
}

/* LOCK is open.  Does its file system support what was asked for?  Returns 0, or -1 with ERROR
 * filled. */
static int check_limits(const struct lock *lock, struct error *error)
{
	bool is_flock = !lock_can(lock, CAN_RANGE);
	enum file_system kind = FS_LOCAL; /* true of a disk, whose device has a major number */
	struct procfs_mount mount;

	if (major(lock->id.file.device) == 0)
		kind = file_system_of(lock->fd);
	if ((kind == FS_NETWORK || kind == FS_SHARED) && file_system_mount(lock->fd, &mount) &&
	    file_system_hides_all_locks(&mount))
		return error_plain(error, ERROR_UNAVAILABLE,
		    "on %s, other machines do not see a kernel lock: use -m mkdir", mount.type);
	/* Another client may still find the removed file under the name, in its cache.  A lock on
	 * that file does not exclude one on the name's next file. */
	if (lock->spec->to_be_removed && file_system_of(lock->fd) != FS_LOCAL)
		return error_plain(error, ERROR_UNAVAILABLE,
		    "--rm: other machines may use this file system, and may see a removed file for "
		    "a while: leave out --rm");
	if (is_flock && S_ISDIR(lock->id.permissions) && lockfile_on_network(lock))
		return error_plain(error, ERROR_LOCKABLE,
		    "on a network file system, a directory is locked only for this machine: lock a "
		    "file");
	if (is_flock && lock->spec->slots > 0 && lockfile_on_network(lock))
		return error_plain(error, ERROR_UNAVAILABLE,
		    "-j: on a network file system the slots of flock exclude each other: use -m "
		    "ofd");
	return 0;
}

bool lockfile_may_be_hidden(const struct lock *lock, char *type, size_t size)
{
	struct procfs_mount mount;

	if (major(lock->id.file.device) != 0 || file_system_of(lock->fd) != FS_SHARED ||
	    !file_system_mount(lock->fd, &mount) || !file_system_may_hide_locks(&mount))
		return false;
	snprintf(type, size, "%s", mount.type);
	return true;
}

/* ---- opening and releasing ---- */

int lockfile_identify(struct lock *lock)
{
	struct stat file;

	if (fstat(lock->fd, &file) != 0)
		return -1;
	lock->id.file = identity_of(&file);
	lock->id.owner = file.st_uid;
	lock->id.group = file.st_gid;
	lock->id.permissions = file.st_mode;
	return 0;
}

static bool is_on_nfs(const struct lock *lock)
{
	return FAULT_POINT("file_system.nfs") ||
	       (major(lock->id.file.device) == 0 && file_system_nfs(lock->fd));
}

/* On NFS, a cached name can mean a file that another machine has removed.  So ask the server about
 * the directory: if it has changed, the kernel looks up its names anew. */
static void ask_for_name(const struct lock *lock)
{
	char space[PATH_MAX];
	const char *path = path_directory(lock->spec->name, space);
	int directory = path == NULL ? -1 : open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (directory < 0)
		return;
	file_system_ask(directory, "");
	close(directory);
}

/* stat(2) fails with EACCES on some links that we follow by hand to open the name
 * (fs.protected_symlinks: root's link in another user's sticky directory).  Follow them by hand
 * here, too: otherwise such a name would seem to mean another file by now. */
static int stat_through_link(const struct lock *lock, struct stat *file)
{
	char path[PATH_MAX];
	struct error ignored;

	if (safe_open_follow(lock->spec->name, LINKS_NOT_PLANTED, path, &ignored) < 0)
		return -1;
	return stat(path, file);
}

static int stat_name(const struct lock *lock, struct stat *file)
{
	if (stat(lock->spec->name, file) == 0)
		return 0;
	return errno == EACCES ? stat_through_link(lock, file) : -1;
}

bool lockfile_current(const struct lock *lock)
{
	struct stat now;

	if (lock->spec->name == NULL)
		return lock->spec->may_be_deleted ||
		       (fstat(lock->fd, &now) == 0 && now.st_nlink > 0);
	if (is_on_nfs(lock))
		ask_for_name(lock);
	return stat_name(lock, &now) == 0 && lock_is_on(lock, &now);
}

/* We hold LOCK exclusively.  A process that gets the lock on this file after us compares the name
 * as well, and finds that it is gone.  So unlink(2) lets no second process hold the lock. */
static void remove_name(const struct lock *lock, struct stat *file)
{
	CRASH_POINT("lockfile.retaken");
	if (lstat(lock->spec->name, file) != 0 || !S_ISREG(file->st_mode) ||
	    !lock_is_on(lock, file) || file->st_size > 0 || unlink(lock->spec->name) != 0)
		return;
	CRASH_POINT("lockfile.unlinked");
	/* It was the file's only name, so no newcomer finds the file: remove the queue as well. */
	if (file->st_nlink == 1)
		queuefile_remove(lock);
}

/* Our own lock has been released.  Take it again, through a new descriptor and without waiting: a
 * process that the command left behind may still hold it, through an inherited descriptor. */
bool lockfile_remove(struct lock *lock)
{
	struct lock_spec whole = *lock->spec;
	struct lock again = *lock;
	struct stat file = {.st_size = 0}, opened;
	struct error error;

	whole.mode = EXCLUSIVE;
	whole.slots = 0;
	whole.range = (struct range){0, 0}; /* other parts of the file are others' locks */
	again.spec = &whole;
	again.kernel.access = again.spec->method->access(&again);
	again.fd = open(again.spec->name, open_flags(&again) | O_NOFOLLOW);
	if (again.fd < 0)
		return true;
	if (fstat(again.fd, &opened) == 0 && lock_is_on(lock, &opened) &&
	    again.spec->method->take(&again, TRY, &error) == TAKEN)
		remove_name(&again, &file);
	close(again.fd);
	return file.st_size == 0;
}

static int identify_descriptor(struct lock *lock, struct error *error)
{
	if (lockfile_identify(lock) == 0)
		return 0;
	if (errno == EBADF) {
		error_plain(error, ERROR_LOCKABLE,
		    "this descriptor is not open; a shell opens it with exec %d>>FILE%s, and ksh "
		    "and mksh pass it on with %d>&%d after the command",
		    lock->fd, lock->fd > 9 ? " (sh: use 3 to 9)" : "", lock->fd, lock->fd);
		error->errnum = EBADF;
		return -1;
	}
	return error_set(error, ERROR_LOCKABLE, "cannot examine this descriptor");
}

/* K1: open the file. */
static int open_by_name(struct lock *lock, struct error *error)
{
	bool is_link;
	int flags, fd;

	if (lock->kernel.access == O_RDONLY)
		lock->kernel.access = lock->spec->method->access(lock);
	flags = open_flags(lock);
	error->kind = ERROR_NONE;
	do {
		fd = open_or_create(lock, lock->spec->name, flags, &is_link, error);
		if (is_link)
			fd = open_through_link(lock, flags, error);
	} while (fd < 0 && error->kind == ERROR_NONE);
	if (fd < 0)
		return -1;
	lock->fd = descriptor_above_standard(fd);
	if (lock->fd < 0)
		return error_set(error, ERROR_SYSTEM, "cannot open");
	if (lock->fd != fd && lock->child != NULL && lock->child->inherits)
		fcntl(lock->fd, F_SETFD, 0);
	if (lockfile_identify(lock) != 0)
		return error_set(error, ERROR_SYSTEM, "cannot examine it");
	if (lock->spec->to_be_removed && !S_ISREG(lock->id.permissions))
		return error_plain(error, ERROR_USAGE,
		    "--rm removes only regular files; this is not one");
	if (S_ISFIFO(lock->id.permissions))
		return error_plain(error, ERROR_OPEN, "is a FIFO, not a file to lock");
	if (S_ISCHR(lock->id.permissions))
		/* no O_NONBLOCK: the command may read a terminal through it */
		fcntl(lock->fd, F_SETFL, 0);
	return 0;
}

int kernel_open(struct lock *lock, struct error *error)
{
	lock->fd = lock->spec->fd;
	if ((lock->spec->name != NULL ? open_by_name(lock, error)
				      : identify_descriptor(lock, error)) != 0)
		return -1;
	if (lock->spec->name == NULL && !lockfile_current(lock))
		return error_plain(error, ERROR_LOCKABLE,
		    "its file has been deleted or replaced, so a program that opens its name "
		    "locks another file: open the descriptor again");
	return check_limits(lock, error);
}

enum outcome kernel_idle(struct lock *lock, struct error *error)
{
	enum outcome outcome = attempt_try(lock, error);

	if (outcome == TAKEN)
		attempt_drop(lock);
	return outcome;
}

void kernel_release(struct lock *lock)
{
	if (lock->spec->name == NULL || lock->fd < 0)
		return;
	close(lock->fd);
	lock->fd = -1;
	lock->slot = -1;
}

/* ---- is it still ours? ---- */

/* Does a read from FD fail with EIO, as on NFS if its lock is lost?  Read with O_DIRECT: otherwise,
 * reading an empty or a cached file does not ask the server. */
static bool is_unreadable(int fd)
{
	_Alignas(4096) char page[4096];
	int flags = fcntl(fd, F_GETFL);
	ssize_t got;

	if (flags < 0 || (flags & O_ACCMODE) == O_WRONLY ||
	    fcntl(fd, F_SETFL, flags | O_DIRECT) != 0)
		return false;
	UNINTERRUPTED(got, pread(fd, page, sizeof page, 0));
	fcntl(fd, F_SETFL, flags);
	return got < 0 && errno == EIO;
}

static bool are_anothers(const struct lock *lock, off_t start, off_t length)
{
	struct flock bytes = {
	    .l_type = lock->spec->mode == SHARED ? F_RDLCK : F_WRLCK,
	    .l_whence = SEEK_SET,
	    .l_start = lock->spec->range.start + start,
	    .l_len = length,
	};
	int command = lock_can(lock, OWNED_BY_PROCESS) ? F_GETLK : F_OFD_GETLK, result;

	UNINTERRUPTED(result, fcntl(lock->fd, command, &bytes));
	return result == 0 && bytes.l_type != F_UNLCK;
}

/* Does another process have any byte of LOCK?  With --take, LOCK has several slots, each a byte. */
static bool is_anothers(const struct lock *lock)
{
	if (lock->slot < 0)
		return are_anothers(lock, 0, lock->spec->range.length);
	for (unsigned slot = 0; slot < lock->spec->slots; slot++)
		if (((int)slot == lock->slot || slots_has(lock, slot)) &&
		    are_anothers(lock, (off_t)slot, 1))
			return true;
	return false;
}

/* Can the server give the lock to another machine?  Not if the mount keeps locks in this kernel. */
static bool is_leased(const struct lock *lock)
{
	bool is_flock = !lock_can(lock, CAN_RANGE);
	struct procfs_mount mount;

	return !file_system_mount(lock->fd, &mount) || !file_system_hides_locks(&mount, is_flock);
}

/* A kernel lock on NFS 4 is a lease: the server gives it to another machine if it has not heard
 * from this one for too long.  This kernel still lists the lock, but a read through a descriptor
 * whose lock is lost fails with EIO, and F_GETLK asks the server whether another lock conflicts
 * with ours. */
bool kernel_lock_owned(struct lock *lock)
{
	if (lock->fd < 0 || lock->place.covered || !is_on_nfs(lock) || !is_leased(lock))
		return true;
	return !is_unreadable(lock->fd) && !is_anothers(lock);
}
