#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crash.h"
#include "descriptor.h"
#include "lockfile.h"
#include "queue.h"

/* O_NONBLOCK: a FIFO without a writer would hang us in open().  O_NOCTTY: a
 * terminal must not become ours.  Never O_TRUNC: the file may be somebody's data. */
static int open_flags(const struct lock *lock)
{
	return lock->access | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
}

static int cannot(struct why *why, const char *what)
{
	switch (errno) {
	case ENOMEM:
	case EMFILE:
	case ENFILE:
		return why_set(why, TROUBLE_SYSTEM, "%s", what);
	case EROFS:
	case ENOSPC:
	case EDQUOT:
		return why_set(why, TROUBLE_CREATE, "%s", what);
	case ENXIO:
		return why_say(why, TROUBLE_OPEN, "is a socket or a device that is not there, "
						  "not a file to lock");
	}
	return why_set(why, TROUBLE_OPEN, "%s", what);
}

/* The directory that PATH's last component is in. */
static int stat_parent(const char *path, struct stat *parent)
{
	char name[PATH_MAX];
	const char *slash = strrchr(path, '/');
	size_t length = slash == NULL ? 0 : (size_t)(slash - path);

	if (slash == NULL)
		return stat(".", parent);
	if (length == 0)
		return stat("/", parent);
	if (length >= sizeof name) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(name, path, length);
	name[length] = '\0';
	return stat(name, parent);
}

/* In a directory like /tmp anybody can plant a link that leads us to open, and lock,
 * a file of the planter's choice.  A link there counts only if its owner could do us
 * harm anyway: us, root, the directory's owner.  Nobody else can put another link in
 * its place between this look and the open, for the directory is sticky. */
static bool link_is_planted(const char *path, const struct stat *link)
{
	struct stat parent;

	if (stat_parent(path, &parent) != 0)
		return true;
	if ((parent.st_mode & S_ISVTX) == 0 || (parent.st_mode & S_IWOTH) == 0)
		return false;
	return link->st_uid != geteuid() && link->st_uid != 0 && link->st_uid != parent.st_uid;
}

/* Returns a descriptor, or -1 with WHY filled, or -1 with WHY untouched when the link
 * has gone meanwhile. */
static int open_link(struct lock *lock, struct why *why)
{
	struct stat link;
	int fd;

	if (lstat(lock->name, &link) != 0 || !S_ISLNK(link.st_mode))
		return -1;
	if (link_is_planted(lock->name, &link))
		return why_say(why, TROUBLE_OPEN,
		    "refused: a symbolic link that user %ld put into a directory open to all",
		    (long)link.st_uid);
	fd = open(lock->name, open_flags(lock));
	if (fd < 0 && errno == ENOENT) /* it dangles: make what it leads to */
		fd = open(lock->name, open_flags(lock) | O_CREAT, lock->create_mode);
	if (fd < 0)
		cannot(why, "cannot open");
	return fd;
}

static int create(struct lock *lock, struct why *why)
{
	int fd = open(lock->name, open_flags(lock) | O_CREAT | O_EXCL | O_NOFOLLOW,
	    lock->create_mode);

	if (fd < 0) {
		if (errno != EEXIST)
			cannot(why, "cannot create");
		return -1;
	}
	CRASH_POINT("lockfile.created");
	if (lock->exact_mode && fchmod(fd, lock->create_mode) != 0) {
		why_set(why, TROUBLE_CREATE, "cannot set the mode");
		close(fd);
		return -1;
	}
	return fd;
}

/* Without O_CREAT first, and then only with O_EXCL: with fs.protected_regular even
 * root may not open another user's file in a sticky directory with O_CREAT. */
static int open_or_create(struct lock *lock, struct why *why)
{
	int fd;

	why->trouble = TROUBLE_NONE;
	do {
		fd = open(lock->name, open_flags(lock) | O_NOFOLLOW);
		if (fd >= 0)
			return fd;
		if (errno == ELOOP || errno == EMLINK)
			fd = open_link(lock, why);
		else if (errno == ENOENT)
			fd = create(lock, why);
		else if (errno == EACCES && lock->access == O_RDWR)
			why_set(why, TROUBLE_OPEN, "cannot open for writing, as this lock needs");
		else if (errno == EISDIR)
			why_say(why, TROUBLE_LOCKABLE,
			    "is a directory, and cannot be opened for writing as this lock needs");
		else if (errno != EINTR)
			cannot(why, "cannot open");
	} while (fd < 0 && why->trouble == TROUBLE_NONE);
	return fd;
}

static int check_kind(mode_t kind, struct why *why)
{
	if (S_ISFIFO(kind))
		return why_say(why, TROUBLE_OPEN, "is a FIFO, not a file to lock");
	if (S_ISSOCK(kind))
		return why_say(why, TROUBLE_OPEN, "is a socket, not a file to lock");
	return 0;
}

int lockfile_open(struct lock *lock, struct why *why)
{
	int fd = open_or_create(lock, why);
	struct stat file;

	if (fd < 0)
		return -1;
	lock->fd = descriptor_above_standard(fd);
	if (lock->fd < 0)
		return why_set(why, TROUBLE_SYSTEM, "cannot open");
	if (fstat(lock->fd, &file) != 0)
		return why_set(why, TROUBLE_SYSTEM, "cannot look at it");
	lock->device = file.st_dev;
	lock->inode = file.st_ino;
	lock->owner = file.st_uid;
	lock->group = file.st_gid;
	lock->permissions = file.st_mode;
	return check_kind(file.st_mode, why);
}

bool lockfile_current(const struct lock *lock)
{
	struct stat now;

	if (lock->name == NULL)
		return lock->may_be_deleted || (fstat(lock->fd, &now) == 0 && now.st_nlink > 0);
	return stat(lock->name, &now) == 0 && now.st_dev == lock->device &&
	       now.st_ino == lock->inode;
}

/* Our own lock is gone already, and is taken again without waiting: only then is it
 * certain that nothing the command left behind holds it still through a descriptor it
 * inherited.  The rest is the proof of the protocol: the name is compared under the
 * exclusive lock, and removed under it, and everybody who takes the lock compares, too. */
void lockfile_remove(struct lock *lock)
{
	struct why why;
	unsigned slots = lock->slots;

	lock->mode = EXCLUSIVE;
	lock->slots = 0;
	lock->access = lock->method->access(lock);
	if (lockfile_open(lock, &why) == 0 && lock->method->take(lock, TRY, &why) == TAKEN) {
		CRASH_POINT("lockfile.retaken");
		if (lockfile_current(lock) && unlink(lock->name) == 0) {
			CRASH_POINT("lockfile.unlinked");
			queue_remove(lock);
		}
	}
	lock->slots = slots;
	lock_forget(lock);
}
