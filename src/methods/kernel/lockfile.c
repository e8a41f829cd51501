#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "methods/kernel/lockfile.h"
#include "lock/attempt.h"
#include "lock/queuefile.h"
#include "lock/take.h"
#include "methods/kernel/kernel_methods.h"
#include "methods/kernel/limits.h"
#include "methods/kernel/safe_open.h"
#include "sys/crash_points.h"
#include "sys/descriptor.h"
#include "sys/file_system.h"
#include "sys/path.h"

/* Without O_CLOEXEC from the start, which saves a call: with a kernel lock, we exec only the command. */
static bool inherited(const struct lock *lock)
{
	return lock->child != NULL && lock->child->inherits;
}

/* O_NONBLOCK: open() of a FIFO without a writer would block.  O_NOCTTY: a terminal must not become ours.
 * Never O_TRUNC: the file may be somebody's data. */
static int open_flags(const struct lock *lock)
{
	return lock->access | O_NOCTTY | O_NONBLOCK | (inherited(lock) ? 0 : O_CLOEXEC);
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
		return error_say(error, ERROR_OPEN,
		    "is a socket, a FIFO or a device that is not there, not a file to lock");
	}
	return error_set(error, ERROR_OPEN, "%s", what);
}

/* It may be there and refuse files: /dev/fd, or a directory that has been removed. */
static bool directory_exists(const char *path)
{
	char space[PATH_MAX];
	const char *directory = path_directory(path, space);

	return directory != NULL && access(directory, F_OK) == 0;
}

static int create_file(const struct lock *lock, const char *path, struct error *error)
{
	int fd = openat(AT_FDCWD, path, open_flags(lock) | O_CREAT | O_EXCL | O_NOFOLLOW,
	    lock->spec->create_mode);

	if (fd < 0) {
		if (errno == EISDIR)
			error_say(error, ERROR_OPEN, "there is no such directory, and its name ends in a slash");
		else if (errno == ENOENT)
			error_say(error, ERROR_OPEN, directory_exists(path)
				? "is not there, and no file can be made in its directory"
				: "cannot create: its directory is not there");
		else if (errno != EEXIST && errno != EINTR)
			open_failed(error, "cannot create");
		return -1;
	}
	CRASH_POINT("lockfile.created");
	if (lock->spec->exact_mode && fchmod(fd, lock->spec->create_mode) != 0) {
		error_set(error, ERROR_CREATE, "cannot set the mode");
		close(fd);
		return -1;
	}
	return fd;
}

static void explain_failed_open(const struct lock *lock, struct error *error)
{
	if (errno == EACCES && lock->access != O_RDONLY)
		error_set(error, ERROR_OPEN, "cannot open for writing, as this lock needs");
	else if (errno == EISDIR)
		error_say(error, ERROR_LOCKABLE,
		    "is a directory, and cannot be opened for writing as this lock needs");
	else if (errno != EINTR)
		open_failed(error, "cannot open");
}

/* K1.  Without O_CREAT first, and then only with O_EXCL: with fs.protected_regular even root may
 * not open another user's file in a sticky directory with O_CREAT.  *IS_LINK: PATH is a symbolic link,
 * which must be checked first.  -1 without an error: try again.
 * (openat: the open of musl makes a second system call for O_CLOEXEC.) */
static int open_or_create(const struct lock *lock, const char *path, bool *is_link,
    struct error *error)
{
	int fd = openat(AT_FDCWD, path, open_flags(lock) | O_NOFOLLOW);

	*is_link = fd < 0 && (errno == ELOOP || errno == EMLINK);
	if (fd < 0 && errno == ENOENT)
		return create_file(lock, path, error);
	if (fd < 0 && !*is_link)
		explain_failed_open(lock, error);
	return fd;
}

/* The last component of the name is a symbolic link. */
static int open_through_link(const struct lock *lock, struct error *error)
{
	char path[PATH_MAX];
	bool is_link;
	int fd;

	switch (safe_open_follow(lock->spec->name, path, error)) {
	case SYMLINKS_FOLLOWED:
		return open_or_create(lock, path, &is_link, error);
	case SYMLINKS_MAGIC:
		fd = open(lock->spec->name, open_flags(lock));
		if (fd < 0)
			open_failed(error, "cannot open");
		return fd;
	case SYMLINKS_REFUSED:
		break;
	}
	return -1;
}

static int open_by_name(const struct lock *lock, struct error *error)
{
	bool is_link;
	int fd;

	error->kind = ERROR_NONE;
	do {
		fd = open_or_create(lock, lock->spec->name, &is_link, error);
		if (is_link)
			fd = open_through_link(lock, error);
	} while (fd < 0 && error->kind == ERROR_NONE);
	return fd;
}

static int check_kind(const struct lock *lock, struct error *error)
{
	mode_t kind = lock->id.permissions;

	if (lock->spec->to_be_removed && !S_ISREG(kind))
		return error_say(error, ERROR_USAGE, "--rm removes plain files, and this is none");
	if (S_ISFIFO(kind))
		return error_say(error, ERROR_OPEN, "is a FIFO, not a file to lock");
	return 0;
}

int lockfile_identify(struct lock *lock)
{
	struct stat file;

	if (fstat(lock->fd, &file) != 0)
		return -1;
	lock->id.device = file.st_dev;
	lock->id.inode = file.st_ino;
	lock->id.owner = file.st_uid;
	lock->id.group = file.st_gid;
	lock->id.permissions = file.st_mode;
	return 0;
}

int lockfile_open(struct lock *lock, struct error *error)
{
	int fd = open_by_name(lock, error);

	if (fd < 0)
		return -1;
	lock->fd = descriptor_above_standard(fd);
	if (lock->fd < 0)
		return error_set(error, ERROR_SYSTEM, "cannot open");
	if (lock->fd != fd && inherited(lock))
		fcntl(lock->fd, F_SETFD, 0);
	if (lockfile_identify(lock) != 0)
		return error_set(error, ERROR_SYSTEM, "cannot look at it");
	return check_kind(lock, error);
}

static bool is_inode(const struct lock *lock, const struct stat *file)
{
	return file->st_dev == lock->id.device && file->st_ino == lock->id.inode;
}

/* On NFS a name in the cache can mean a file that another machine has removed.  If the directory is found to
 * have changed, its names are looked up anew. */
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

bool lockfile_current(const struct lock *lock)
{
	struct stat now;

	if (lock->spec->name == NULL)
		return lock->spec->may_be_deleted || (fstat(lock->fd, &now) == 0 && now.st_nlink > 0);
	if (file_system_nfs(lock->fd, lock->id.device))
		ask_for_name(lock);
	return stat(lock->spec->name, &now) == 0 && is_inode(lock, &now);
}

/* LOCK is held exclusively.  Every process that takes the lock compares the name, too, so that nothing
 * can come between the comparison and the unlink. */
static void remove_name(const struct lock *lock, struct stat *file)
{
	CRASH_POINT("lockfile.retaken");
	if (lstat(lock->spec->name, file) != 0 || !S_ISREG(file->st_mode) || !is_inode(lock, file) ||
	    file->st_size > 0 || unlink(lock->spec->name) != 0)
		return;
	CRASH_POINT("lockfile.unlinked");
	if (file->st_nlink == 1) /* else other processes come by the other name */
		queuefile_remove(lock); /* no newcomer can find it */
}

/* Our own lock has been released, and is taken again without waiting: else a process that the command
 * left behind might hold it still, through an inherited descriptor. */
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
	again.access = again.spec->method->access(&again);
	again.fd = open(again.spec->name, open_flags(&again) | O_NOFOLLOW);
	if (again.fd < 0)
		return true;
	if (fstat(again.fd, &opened) == 0 && is_inode(lock, &opened) &&
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
		error_say(error, ERROR_LOCKABLE,
		    "this descriptor is not open; a shell opens it with exec %d>>FILE, and ksh and mksh "
		    "hand it on with %d>&%d behind the command", lock->fd, lock->fd, lock->fd);
		error->errnum = EBADF;
		return -1;
	}
	return error_set(error, ERROR_LOCKABLE, "cannot look at this descriptor");
}

int kernel_open(struct lock *lock, struct error *error)
{
	if (lock->spec->name != NULL) {
		lock->fd = -1;
		if (lock->access == O_RDONLY)
			lock->access = lock->spec->method->access(lock);
		return lockfile_open(lock, error) != 0 ? -1 : limits_check(lock, error);
	}
	if (identify_descriptor(lock, error) != 0)
		return -1;
	return lockfile_current(lock) ? limits_check(lock, error) : lock_say_deleted(error);
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
