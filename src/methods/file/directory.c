/* The directory that a lock made of files is in. */
#include <config.h>

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "sys/descriptor.h"
#include "sys/retry.h"
#include "methods/file/filesystem.h"
#include "methods/file/namefile.h"
#include "sys/path.h"

static int open_it(const char *path)
{
	char space[PATH_MAX];
	const char *name = path_directory(path, space);

	return name == NULL ? -1 : call_open(AT_FDCWD, name, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
}

/* The directory is what identifies the lock, together with the name; and whoever may
 * write and search there may take the lock, as readers may lock a file: the queue goes by that. */
static int note_directory(struct lock *lock, struct error *error)
{
	struct stat status;

	if (fstat(lock->file->directory, &status) != 0)
		return error_set(error, ERROR_OPEN, "cannot look at its directory");
	lock->device = status.st_dev;
	lock->inode = status.st_ino;
	lock->owner = status.st_uid;
	lock->group = status.st_gid;
	lock->permissions = S_IFDIR | (status.st_mode & status.st_mode << 1 & (S_IWGRP | S_IWOTH)) << 1;
	return 0;
}

int namefile_open_directory(struct lock *lock, struct error *error)
{
	int fd = open_it(lock->name);

	lock->directory = lock->file->directory = fd < 0 ? -1 : descriptor_above_standard(fd);
	if (lock->file->directory < 0)
		return error_set(error, ERROR_OPEN, "cannot open its directory");
	lock->file->local = filesystem_is_local(lock->file->directory);
	return note_directory(lock, error);
}

/* While we waited, another directory may have got the name; and whoever comes now, goes there. */
bool namefile_current(const struct lock *lock)
{
	char space[PATH_MAX];
	const char *name = path_directory(lock->name, space);
	struct stat now;

	return name != NULL && stat(name, &now) == 0 && now.st_dev == lock->device &&
	       now.st_ino == lock->inode;
}
