/* SPDX-License-Identifier: MIT */
/* A directory that exists while the lock is held, with the record in it.  It is made and filled
 * under a temporary name, then renamed to the lock's name.  So, unless D1' made it, an empty
 * directory with the lock's name is another program's lock, made with mkdir(1).  A plain rename(2)
 * would replace it: RENAME_NOREPLACE is needed.  The D steps are those of the model
 * tests/models/semlock_file.pml. */
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
#define MOST_FILES 4 /* files in another program's lock, besides RECORD_NAME */

/* Users whom the mode allows to read may also search the directory. */
static mode_t mkdir_mode(const struct lock *lock)
{
	mode_t mode = lock->spec->exact_mode ? lock->spec->create_mode : 0666;

	return mode | (mode & 0444) >> 2;
}

/* D1: make the directory, under a temporary name. */
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

/* D1': make the directory under the lock's name, where there is no RENAME_NOREPLACE (NFS, FUSE).
 * It is empty for a moment.  If we are killed then, it stays empty. */
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

/* Another program's lock has a few files in it.  A directory that names no process and has more
 * than MOST_FILES, or a directory, in it is not a lock. */
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

/* Remove the directory without renaming it first, because renameat(2) has failed: with EXDEV for a
 * directory from a lower layer of overlayfs (a container's image), or because the longer new name
 * does not fit on a full disk.  If we are killed between the two calls, an empty directory
 * stays. */
static int remove_in_place(const struct lock *lock, int fd)
{
	if (call_unlink(fd, RECORD_NAME, 0) != 0 && errno != ENOENT)
		return -1;
	return call_unlink(lock->files.directory, lock->id.entry, AT_REMOVEDIR);
}

/* D6: free the lock's name with one rename, then take the directory apart under a temporary
 * name. */
static int mkdir_remove(struct lock *lock, int fd)
{
	const bool held = lock->files.state->life == OBJECT_HELD;
	char gone[NAME_SIZE];
	int result;

	/* In a takeover, leave the directory alone if other files are in it. */
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
		/* Between our comparison and our rename, the lock was removed, and another process
		 * took it.  We have renamed that process's directory: rename it back. */
		rename_noreplace(lock->files.directory, gone, lock->id.entry);
		errno = ENOENT;
		return -1;
	}
	CRASH_POINT("mkdir.gone");
	if (held)
		/* R3, release the flock: right after R2 (the name is free), so that waiters need
		 * not wait for the rest */
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
