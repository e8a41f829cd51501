/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/crash_points.h"
#include "sys/files.h"
#include "methods/file/publish.h"
#include "methods/file/rename_file.h"

#define RENAME_FILE_FLAGS (O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)

const char *rename_file_held_name(const struct lock *lock, char name[NAME_SIZE])
{
	snprintf(name, NAME_SIZE, "%.240s.held", lock->id.entry);
	return name;
}

/* The file can move from the second name to the first between two tries. */
int rename_file_open(const struct lock *lock)
{
	char held[NAME_SIZE];
	int fd = -1;

	rename_file_held_name(lock, held);
	for (int tries = 0; fd < 0 && tries < 1000; tries++) {
		fd = openat(lock->directory, tries % 2 == 0 ? lock->id.entry : held, RENAME_FILE_FLAGS);
		if (fd < 0 && errno != ENOENT && errno != EINTR)
			break;
	}
	return fd;
}

enum outcome rename_file_flock(int fd, enum wait wait, struct error *error)
{
	if (!FAULT_POINT("rename.flock") && (wait == TRY ? call_try_flock(fd) : flock(fd, LOCK_EX)) == 0)
		return TAKEN;
	if (errno == EWOULDBLOCK || errno == EINTR)
		return BUSY;
	return error_set(error, ERROR_UNAVAILABLE, "use -m link or excl: flock(2), which guards the lock file, fails here");
}

/* The new file FD is flocked before it has its name: no process can take it until we know that there is
 * no other file away. */
static int publish_file(const struct lock *lock, int fd, struct error *error)
{
	char held[NAME_SIZE];
	struct stat other;

	if (rename_file_flock(fd, TRY, error) == FAILED)
		return -1;
	if (publish_link(lock, fd) != 0)
		return errno == EEXIST ? 0 : lockdir_failed(error, ERROR_CREATE, "cannot make the lock file");
	if (fstatat(lock->directory, rename_file_held_name(lock, held), &other, 0) == 0)
		call_unlink(lock->directory, lock->id.entry, 0);
	return 0;
}

int rename_file_make(struct lock *lock, struct error *error)
{
	struct file_lock *file = lock->file;
	int fd = publish_set_up(lock, lockdir_create_file(lock, lock->spec->create_mode), lock->spec->create_mode), result;

	if (fd < 0)
		return lockdir_failed(error, ERROR_CREATE, "cannot make the lock file");
	result = publish_file(lock, fd, error);
	if (file->temporary[0] != '\0')
		call_unlink(lock->directory, file->temporary, 0);
	file->temporary[0] = '\0';
	close(fd);
	return result;
}

/* Without RENAME_NOREPLACE our flock on the only file keeps others from making TO between the look
 * and the call. */
int rename_file_move(const struct lock *lock, const char *from, const char *to)
{
	struct stat other;
	int result;

	UNINTERRUPTED(result, FAULT_POINT("rename.rename") ? -1 : rename_noreplace(lock->directory, from, to));
	if (result == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	if (fstatat(lock->directory, to, &other, AT_SYMLINK_NOFOLLOW) == 0) {
		errno = lockdir_same(lock, from, lock->fd) ? EEXIST : ENOENT; /* a script was faster */
		return -1;
	}
	return call_rename(lock->directory, from, to);
}

/* RECORD_FULL: a record that was not erased; RECORD_PID: a script's. */
int rename_file_check(const struct lock *lock, struct error *error)
{
	const int64_t longest_pid = 16;
	struct record record;
	struct stat status;

	lock->file->object->read(lock->fd, &record);
	if (record.kind == RECORD_EMPTY || record.kind == RECORD_FULL ||
	    (record.kind == RECORD_PID && record.host[0] == '\0' &&
		fstat(lock->fd, &status) == 0 && status.st_size <= longest_pid))
		return 0;
	return error_plain(error, ERROR_OPEN,
	    "is no lock file: there is something in it that would be lost; left alone");
}
