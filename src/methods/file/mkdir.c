/* SPDX-License-Identifier: MIT */
/* A directory that exists while the lock is held, with the record in it.  It is made and filled
 * under a temporary name and then renamed: except in D1', an empty directory belongs to another
 * program.  The rename needs RENAME_NOREPLACE: a plain rename(2) replaces an empty directory, which
 * is a lock of mkdir(1).  The D steps are those of the model tests/models/semlock_file.pml. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "sys/crash_points.h"
#include "sys/files.h"
#include "methods/file/filemethods.h"

#define RECORD_NAME "pid"
#define MOST_FILES 4 /* beside the record, in another program's lock */

/* Users whom the mode allows to read may also search the directory. */
static mode_t mkdir_mode(const struct lock *lock)
{
	mode_t mode = lock->spec->exact_mode ? lock->spec->create_mode : 0666;

	return mode | (mode & 0444) >> 2;
}

/* D1: make it. */
static int mkdir_make(struct lock *lock, struct error *error)
{
	struct file_lock *file = lock->files.state;
	int made;

	do {
		lockdir_temporary_name(lock, "", file->temporary);
		made = mkdirat(lock->files.directory, file->temporary, mkdir_mode(lock));
	} while (made != 0 && (errno == EEXIST || errno == EINTR));
	if (made != 0)
		return lockdir_failed(error, ERROR_CREATE,
		    "cannot create a directory in its directory");
	CRASH_POINT("mkdir.made");
	lock->fd = publish_set_up(lock,
	    call_open(lock->files.directory, file->temporary,
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0),
	    mkdir_mode(lock));
	return lock->fd >= 0 ? 0
	                     : lockdir_failed(error, ERROR_CREATE, "cannot open what we have made");
}

static int mkdir_write(const struct lock *lock, int directory, struct error *error)
{
	int fd = call_open(directory, RECORD_NAME,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, lock->spec->create_mode);
	int result;

	if (fd < 0)
		return lockdir_failed(error, ERROR_CREATE, "cannot create its record");
	CRASH_POINT("mkdir.record");
	result = publish_record(lock, fd, error);
	if (result != 0)
		call_unlink(directory, RECORD_NAME, 0);
	close(fd);
	return result;
}

/* D1': for file systems without RENAME_NOREPLACE (NFS, FUSE).  The directory is empty for a moment;
 * if we are killed then, it stays so. */
static enum outcome mkdir_make_empty(struct lock *lock, struct error *error)
{
	int made;

	UNINTERRUPTED(made, mkdirat(lock->files.directory, lock->id.entry, mkdir_mode(lock)));
	if (made != 0)
		return lockdir_not_named(error);
	CRASH_POINT("mkdir.empty");
	return publish_empty(lock, -1, mkdir_mode(lock), error);
}

/* Count the files beside the record, up to MOST_FILES + 1; a directory counts as that many.  -1: FD
 * cannot be read. */
static int other_files(int fd)
{
	DIR *directory = lockdir_list(fd);
	int files = 0;
	const struct dirent *entry;
	struct stat status;

	if (directory == NULL)
		return -1;
	while (files <= MOST_FILES && (entry = readdir(directory)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    strcmp(entry->d_name, RECORD_NAME) == 0)
			continue;
		files++;
		if (fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISDIR(status.st_mode))
			files = MOST_FILES + 1;
	}
	closedir(directory);
	return files;
}

static void read_pid_file(int fd, struct record *record)
{
	int inner = call_open(fd, RECORD_NAME,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0);

	*record =
	    (struct record){.kind = inner < 0 && errno == ENOENT ? RECORD_EMPTY : RECORD_JUNK};
	if (inner < 0)
		return;
	lockdir_read_record(inner, record);
	close(inner);
}

/* Another program's lock has a file or two in it.  A directory that names no process and has more
 * files, or directories, in it is not a lock. */
static void mkdir_read(int fd, struct record *record)
{
	read_pid_file(fd, record);
	if (record->pid <= 0 && other_files(fd) > MOST_FILES)
		record->kind = RECORD_ABSENT;
}

/* Remove the directory NAME.  FUSE and NFS keep a removed record, hidden in the directory, until
 * the waiters that read it have closed it: so try for a tenth of a second.  The lock is free
 * already: this delays nobody.  Returns false if the directory cannot be removed. */
static bool remove_emptied(const struct lock *lock, const char *name)
{
	int tries = 100;

	while (call_unlink(lock->files.directory, name, AT_REMOVEDIR) < 0) {
		if ((errno != ENOTEMPTY && errno != EEXIST && errno != EBUSY) || tries-- == 0)
			return false;
		lockdir_nap(MILLISECOND);
	}
	return true;
}

/* For directories that cannot be renamed: on overlayfs those of a lower layer, as in a container's
 * image; on a full disk all, because the new name is longer.  If we are killed in between, the
 * directory stays empty. */
static int remove_in_place(const struct lock *lock, int fd)
{
	if (call_unlink(fd, RECORD_NAME, 0) != 0 && errno != ENOENT)
		return -1;
	return call_unlink(lock->files.directory, lock->id.entry, AT_REMOVEDIR);
}

/* D6: one rename frees the lock's name; the directory is then taken apart under a temporary one. */
static int mkdir_remove(struct lock *lock, int fd)
{
	const bool held = lock->files.state->life == OBJECT_HELD;
	char gone[NAME_SIZE];
	int result;

	/* In a takeover: the directory holds other files, and is left alone. */
	if (!held && other_files(fd) != 0) {
		errno = ENOTEMPTY;
		return -1;
	}
	lockdir_temporary_name(lock, "gone.", gone);
	UNINTERRUPTED(result,
	    renameat(lock->files.directory, lock->id.entry, lock->files.directory, gone));
	if (result != 0)
		return errno == EXDEV || errno == ENOSPC || errno == EDQUOT
		           ? remove_in_place(lock, fd)
		           : -1;
	if (!lockdir_same(lock, gone, fd)) {
		/* Between the comparison and the rename, the lock was removed and another process
		 * took it: give its name back. */
		rename_noreplace(lock->files.directory, gone, lock->id.entry);
		errno = ENOENT;
		return -1;
	}
	CRASH_POINT("mkdir.gone");
	if (held)
		/* R3, unflock, right after R2, the name's removal: the next holder need not wait */
		flock(fd, LOCK_UN);
	call_unlink(fd, RECORD_NAME, 0);
	CRASH_POINT("mkdir.emptied");
	lock->end.littered = !remove_emptied(lock, gone) && other_files(fd) > 0;
	return 0;
}

static const struct object mkdir_object = {
    .what = "a directory, empty or with a record in it",
    .type = S_IFDIR,
    .make = mkdir_make,
    .write = mkdir_write,
    .publish = publish_renamed,
    .make_empty = mkdir_make_empty,
    .attempt = takeover_attempt,
    .read = mkdir_read,
    .is_ours = lockdir_is_ours,
    .remove = mkdir_remove,
    .beat = object_beat,
};

const struct method method_mkdir = {
    .name = "mkdir",
    .can = CAN_MODE,
    .object = &mkdir_object,
    FILE_METHOD_FUNCTIONS,
};
