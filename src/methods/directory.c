/* The directory that a lock made of files is in. */
#include <config.h>

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "descriptor.h"
#include "methods/calls.h"
#include "methods/filesystem.h"
#include "methods/namefile.h"
#include "path.h"

static int open_it(const char *path)
{
	char space[PATH_MAX];
	const char *name = path_directory(path, space);

	return name == NULL ? -1 : call_open(AT_FDCWD, name, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
}

/* The directory is what identifies the lock, together with the name; and whoever may
 * write there may take the lock, as readers may lock a file: the queue goes by that. */
static int note_directory(struct lock *lock, struct why *why)
{
	struct stat status;

	if (fstat(lock->file->directory, &status) != 0)
		return why_set(why, TROUBLE_OPEN, "cannot look at its directory");
	lock->device = status.st_dev;
	lock->inode = status.st_ino;
	lock->owner = status.st_uid;
	lock->group = status.st_gid;
	lock->permissions = S_IFDIR | (status.st_mode & (S_IWGRP | S_IWOTH)) << 1;
	return 0;
}

int namefile_open_directory(struct lock *lock, struct why *why)
{
	int fd = open_it(lock->name);

	lock->file->directory = fd < 0 ? -1 : descriptor_above_standard(fd);
	if (lock->file->directory < 0)
		return why_set(why, TROUBLE_OPEN, "cannot open its directory");
	lock->file->local = filesystem_is_local(lock->file->directory);
	return note_directory(lock, why);
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
