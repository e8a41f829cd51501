/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "methods/file/takeover.h"
#include "methods/file/lockdir.h"
#include "methods/file/inspect.h"
#include "methods/file/rename_file.h"

/* An O_PATH descriptor cannot be read from: the object is opened by name once more.  False: the name
 * means another object by now. */
static bool inspect_record(const struct lock *lock, const char *name, struct lock_info *info)
{
	int kind = lock->file->object->type == S_IFDIR ? O_DIRECTORY : O_NONBLOCK;
	int fd = openat(lock->directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | kind);
	struct stat status;

	if (fd < 0)
		return errno == EACCES || errno == EPERM;
	info->legible = true;
	lock->file->object->read(fd, &info->record);
	if (fstat(fd, &status) != 0)
		status = (struct stat){0};
	close(fd);
	return status.st_dev == info->status.st_dev && status.st_ino == info->status.st_ino;
}

/* Returns 1: there; 0: not there; -1 with ERROR filled. */
static int inspect_name(const struct lock *lock, const char *name, struct lock_info *info,
    struct error *error)
{
	for (int tries = 0; tries < 100; tries++) {
		lock_info_forget(info);
		info->object = openat(lock->directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (info->object < 0 && errno == ENOENT)
			return 0;
		if (info->object < 0 || fstat(info->object, &info->status) != 0) {
			if (errno == ENOENT || errno == ESTALE)
				continue; /* FUSE and NFS: an open file can be gone */
			return error_set(error, ERROR_OPEN, "cannot look at it");
		}
		if ((info->status.st_mode & S_IFMT) != lock->file->object->type)
			return lockdir_not_a_lock(lock, error);
		info->there = true;
		takeover_note_linking(&info->status);
		if (inspect_record(lock, name, info))
			return 1;
	}
	return error_plain(error, ERROR_OPEN, "cannot look at it: it changes all the time");
}

int inspect_object(const struct lock *lock, struct lock_info *info, struct error *error)
{
	return inspect_name(lock, lock->id.entry, info, error) < 0 ? -1 : 0;
}

int inspect_symlink(const struct lock *lock, struct lock_info *info, struct error *error)
{
	char target[RECORD_LIMIT + 1];
	ssize_t length = readlinkat(lock->directory, lock->id.entry, target, sizeof target);

	if (length < 0 && errno == EINVAL)
		return lockdir_not_a_lock(lock, error);
	if (length < 0 && errno != ENOENT)
		return error_set(error, ERROR_OPEN, "cannot look at it");
	if (length < 0)
		return 0;
	if (fstatat(lock->directory, lock->id.entry, &info->status, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : error_set(error, ERROR_OPEN, "cannot look at it");
	info->there = info->legible = true;
	record_read(&info->record, target, (size_t)length);
	return 0;
}

/* The file is away or at home.  During a rename(2) no name may show:
 * look again. */
int inspect_rename(const struct lock *lock, struct lock_info *info, struct error *error)
{
	char held[NAME_SIZE];
	struct stat status;
	int there;

	for (int tries = 0; tries < 100; tries++) {
		there = inspect_name(lock, rename_file_held_name(lock, held), info, error);
		if (there > 0 && info->record.kind != RECORD_FULL)
			takeover_note_naming(&info->status);
		if (there != 0)
			return there < 0 ? -1 : 0;
		if (fstatat(lock->directory, lock->id.entry, &status, AT_SYMLINK_NOFOLLOW) == 0)
			return S_ISREG(status.st_mode) ? 0 : lockdir_not_a_lock(lock, error);
	}
	return error_plain(error, ERROR_OPEN,
	    "there is no lock file, neither under this name nor with .held behind it");
}

void lock_info_forget(struct lock_info *info)
{
	if (info->object >= 0)
		close(info->object);
	*info = (struct lock_info){.object = -1};
}
