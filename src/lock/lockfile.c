#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/crash_points.h"
#include "sys/descriptor.h"
#include "lock/safe_open.h"
#include "lock/lockfile.h"
#include "sys/path.h"
#include "lock/queue.h"

/* Then it is open for the command from the start, which saves a call: of a kernel lock we exec
 * nothing but the command. */
static bool inherited(const struct lock *lock)
{
	return lock->child != NULL && lock->child->inherits;
}

/* O_NONBLOCK: a FIFO without a writer would hang us in open().  O_NOCTTY: a
 * terminal must not become ours.  Never O_TRUNC: the file may be somebody's data. */
static int open_flags(const struct lock *lock)
{
	return lock->access | O_NOCTTY | O_NONBLOCK | (inherited(lock) ? 0 : O_CLOEXEC);
}

static int cannot(struct error *error, const char *what)
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
		return error_say(error, ERROR_OPEN, "is a socket or a device that is not there, "
						  "not a file to lock");
	}
	return error_set(error, ERROR_OPEN, "%s", what);
}

/* It may be, where there is nothing to be made: /dev/fd, say, or what has been removed under us. */
static bool directory_is_there(const char *path)
{
	char space[PATH_MAX];
	const char *directory = path_directory(path, space);

	return directory != NULL && access(directory, F_OK) == 0;
}

static int create(const struct lock *lock, const char *path, struct error *error)
{
	int fd = openat(AT_FDCWD, path, open_flags(lock) | O_CREAT | O_EXCL | O_NOFOLLOW,
	    lock->create_mode);

	if (fd < 0) {
		if (errno == EISDIR)
			error_say(error, ERROR_OPEN, "there is no such directory, and its name ends in a slash");
		else if (errno == ENOENT)
			error_say(error, ERROR_OPEN, directory_is_there(path)
				? "is not there, and no file can be made in its directory"
				: "cannot create: its directory is not there");
		else if (errno != EEXIST && errno != EINTR)
			cannot(error, "cannot create");
		return -1;
	}
	CRASH_POINT("lockfile.created");
	if (lock->exact_mode && fchmod(fd, lock->create_mode) != 0) {
		error_set(error, ERROR_CREATE, "cannot set the mode");
		close(fd);
		return -1;
	}
	return fd;
}

static void refused(const struct lock *lock, struct error *error)
{
	if (errno == EACCES && lock->access != O_RDONLY)
		error_set(error, ERROR_OPEN, "cannot open for writing, as this lock needs");
	else if (errno == EISDIR)
		error_say(error, ERROR_LOCKABLE,
		    "is a directory, and cannot be opened for writing as this lock needs");
	else if (errno != EINTR)
		cannot(error, "cannot open");
}

/* K1.  Without O_CREAT first, and then only with O_EXCL: with fs.protected_regular even root may
 * not open another user's file in a sticky directory with O_CREAT.  Never through a link that
 * has not been looked at: IS_LINK.  Without a descriptor and a reason, it is to be done again.
 * (openat: the open of musl asks the kernel twice for O_CLOEXEC.) */
static int open_or_create(const struct lock *lock, const char *path, bool *is_link,
    struct error *error)
{
	int fd = openat(AT_FDCWD, path, open_flags(lock) | O_NOFOLLOW);

	*is_link = fd < 0 && (errno == ELOOP || errno == EMLINK);
	if (fd < 0 && errno == ENOENT)
		return create(lock, path, error);
	if (fd < 0 && !*is_link)
		refused(lock, error);
	return fd;
}

/* The last component is a link: look where it leads, and go there. */
static int open_link(const struct lock *lock, struct error *error)
{
	char path[PATH_MAX];
	bool is_link;
	int fd;

	switch (safe_open_follow(lock->name, path, error)) {
	case SYMLINKS_FOLLOWED:
		return open_or_create(lock, path, &is_link, error);
	case SYMLINKS_MAGIC:
		fd = open(lock->name, open_flags(lock));
		if (fd < 0)
			cannot(error, "cannot open");
		return fd;
	case SYMLINKS_REFUSED:
		break;
	}
	return -1;
}

static int open_name(const struct lock *lock, struct error *error)
{
	bool is_link;
	int fd;

	error->kind = ERROR_NONE;
	do {
		fd = open_or_create(lock, lock->name, &is_link, error);
		if (is_link)
			fd = open_link(lock, error);
	} while (fd < 0 && error->kind == ERROR_NONE);
	return fd;
}

static int check_kind(const struct lock *lock, struct error *error)
{
	mode_t kind = lock->permissions;

	if (lock->to_be_removed && !S_ISREG(kind))
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
	lock->device = file.st_dev;
	lock->inode = file.st_ino;
	lock->owner = file.st_uid;
	lock->group = file.st_gid;
	lock->permissions = file.st_mode;
	return 0;
}

int lockfile_open(struct lock *lock, struct error *error)
{
	int fd = open_name(lock, error);

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

bool lockfile_current(const struct lock *lock)
{
	struct stat now;

	if (lock->name == NULL)
		return lock->may_be_deleted || (fstat(lock->fd, &now) == 0 && now.st_nlink > 0);
	return stat(lock->name, &now) == 0 && now.st_dev == lock->device &&
	       now.st_ino == lock->inode;
}

/* Is what is open under LOCK->fd the file that LOCK was taken on? */
static bool holds_inode(const struct lock *lock)
{
	struct stat open_now;

	return fstat(lock->fd, &open_now) == 0 && open_now.st_dev == lock->device &&
	       open_now.st_ino == lock->inode;
}

/* Is NAME, itself and not through a link, the file that LOCK was taken on?  FILE is what it is now. */
static bool still_there(const struct lock *lock, struct stat *file)
{
	return lstat(lock->name, file) == 0 && S_ISREG(file->st_mode) &&
	       file->st_dev == lock->device && file->st_ino == lock->inode;
}

/* Our own lock is gone already, and is taken again without waiting: only then is it
 * certain that nothing the command left behind holds it still through a descriptor it
 * inherited.  The rest is the proof of the protocol: the name is compared under the
 * exclusive lock, and removed under it, and everybody who takes the lock compares, too. */
bool lockfile_remove(struct lock *lock)
{
	struct lock again = *lock;
	struct stat file = {.st_size = 0};
	struct error error;

	again.mode = EXCLUSIVE;
	again.slots = 0;
	again.range = (struct range){0, 0}; /* other parts of the file are others' locks */
	again.access = again.method->access(&again);
	again.fd = open(again.name, open_flags(&again) | O_NOFOLLOW);
	if (again.fd < 0)
		return true;
	if (holds_inode(&again) && again.method->take(&again, TRY, &error) == TAKEN) {
		CRASH_POINT("lockfile.retaken");
		if (still_there(&again, &file) && file.st_size == 0 && unlink(again.name) == 0) {
			CRASH_POINT("lockfile.unlinked");
			if (file.st_nlink == 1) /* else there are those who come by the other name */
				queue_remove(&again);
		}
	}
	close(again.fd);
	return file.st_size == 0;
}
