/* SPDX-License-Identifier: MIT */
/* excl and link: a regular file that exists while the lock is held.  The file of excl has the
 * record in it.  The file of link is one that mail programs know, and must contain only a PID: some
 * of them fail at more than 16 bytes, others then never take over a dead holder's lock.
 *
 * There are four ways to publish the file under the lock's name.  None replaces an existing file.
 * Each is for file systems on which the one before does not work:
 *
 * 1. a file without a name (O_TMPFILE), to which linkat(2) gives the lock's name.  It is written
 * and flocked before others see it.  If we are killed before linkat(2), nothing is left;
 * 2. a file with a temporary name, to which link(2) gives the lock's name: NFS;
 * 3. the same with renameat2(2) and RENAME_NOREPLACE: FAT, which has no hard links;
 * 4. open(2) with O_EXCL under the lock's own name.  The file is empty for a moment.
 *
 * The A steps are those of the model tests/models/semlock_file.pml. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "sys/crash_points.h"
#include "sys/files.h"
#include "methods/file/filemethods.h"

static mode_t plainfile_mode(const struct lock *lock)
{
	if (lock->spec->exact_mode || !lock->files.state->object->pid_only)
		return lock->spec->create_mode;
	return lock->files.state->local ? 0444 : 0644; /* on NFS, LOCK_EX needs O_RDWR */
}

/* A1: make the file.  Without --mode the umask applies, in open(2). */
static int plainfile_make(struct lock *lock, struct error *error)
{
	mode_t mode = plainfile_mode(lock);

	lock->fd = publish_set_up(lock,
	    lockdir_create_file(lock, lock->files.state->temporary, mode), mode);
	CRASH_POINT("plainfile.made");
	return lock->fd >= 0
	           ? 0
	           : lockdir_failed(error, ERROR_CREATE, "cannot create a file in its directory");
}

static int plainfile_remove(struct lock *lock, int fd)
{
	(void)fd;
	return call_unlink(lock->files.directory, lock->id.entry, 0);
}

/* Does the lock's name mean our file, although linking it failed?  On NFS, the server's reply can
 * get lost: the kernel asks again, and the server answers EEXIST, for our own file.  stat(2) of the
 * name can return old attributes on NFS, and on CIFS those of a removed file with that name.
 * open(2) asks the server.  (A link count of two proves nothing: somebody may just have copied the
 * directory with hard links.) */
static bool is_linked(const struct lock *lock)
{
	int fd = call_open(lock->files.directory, lock->id.entry,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);

	if (fd < 0)
		return false;
	close(fd);
	return lockdir_is_ours(lock);
}

/* The fourth way to publish: open(2) with O_EXCL. */
static enum outcome plainfile_make_empty(struct lock *lock, struct error *error)
{
	mode_t mode = plainfile_mode(lock);
	int fd = call_open(lock->files.directory, lock->id.entry,
	    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);

	if (fd < 0)
		return lockdir_not_named(error);
	CRASH_POINT("plainfile.empty");
	return publish_empty(lock, fd, mode, error);
}

/* The second way to publish, link(2).  If link(2) is not supported, the third, renameat2(2). */
static enum outcome plainfile_publish_linked(struct lock *lock, struct error *error)
{
	struct file_lock *file = lock->files.state;
	int result, errnum;

	UNINTERRUPTED(result, FAULT_POINT("plainfile.link") ? -1 : publish_link(lock, lock->fd));
	errnum = errno;
	CRASH_POINT("plainfile.linked");
	if (result == 0 || is_linked(lock)) {
		call_unlink(lock->files.directory, file->temporary, 0);
		file->temporary[0] = '\0';
		return TAKEN;
	}
	errno = errnum;
	return publish_unsupported() ? publish_renamed(lock, error) : lockdir_not_named(error);
}

/* A4: give our file the lock's name, replacing nothing. */
static enum outcome plainfile_publish(struct lock *lock, struct error *error)
{
	int result;

	if (lock->files.state->temporary[0] != '\0')
		return plainfile_publish_linked(lock, error);
	UNINTERRUPTED(result, FAULT_POINT("plainfile.linkat") ? -1 : publish_link(lock, lock->fd));
	if (result == 0)
		return TAKEN;
	if (!publish_unsupported() && errno != ENOENT)
		return lockdir_not_named(error);
	/* for example, /proc is missing: try again with a temporary name */
	lock->files.state->named = true;
	lock->files.state->life = OBJECT_NONE;
	close(lock->fd);
	lock->fd = -1;
	return AGAIN;
}

#define PLAIN_FILE \
	.what = "a regular file with its holder's PID", .type = S_IFREG, .make = plainfile_make, \
	.write = publish_record, .publish = plainfile_publish, .make_empty = plainfile_make_empty, \
	.attempt = takeover_attempt, .read = lockdir_read_record, .is_ours = lockdir_is_ours, \
	.remove = plainfile_remove, .beat = object_beat

const struct method method_excl = {
    .name = "excl",
    .can = CAN_MODE,
    .object = &(const struct object){PLAIN_FILE},
    FILE_METHOD_FUNCTIONS,
};

const struct method method_link = {
    .name = "link",
    .can = CAN_MODE | BEATS,
    .object = &(const struct object){PLAIN_FILE, .pid_only = true},
    FILE_METHOD_FUNCTIONS,
};
