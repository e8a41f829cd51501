/* SPDX-License-Identifier: MIT */
/* One file with two names.  It is called LOCK ("at home") while the lock is free.  To take the
 * lock, a process renames the file to LOCK.held ("away").  To release the lock, the process renames
 * it back.  A semlock that holds the lock also has the file under flock(2).  So if the file is away
 * and not flocked, a dead holder left it, or a script holds the lock.
 *
 * semlock writes the record before the file goes away, and erases the record after the file has
 * come back.  So a file that semlock renamed is never away without a record.  A lookup during a
 * rename may find neither name, so semlock does not make a file that seems to be missing: only
 * --init does. */
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

#define FILE_FLAGS (O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)

static int rename_open(struct lock *lock, struct error *error)
{
	if (lockdir_open(lock, error) != 0)
		return -1;
	if (strlen(lock->id.entry) > 240) {
		errno = ENAMETOOLONG;
		return error_set(error, ERROR_OPEN, "cannot add .held to its name");
	}
	snprintf(lock->files.state->away, NAME_SIZE, "%s.held", lock->id.entry);
	return 0;
}

/* ---- the file ---- */

/* Open the file under either name.  It may be renamed between two tries: try both names in turn. */
static int open_file(const struct lock *lock)
{
	int fd = -1;

	for (int tries = 0; fd < 0 && tries < 1000; tries++) {
		fd = call_open(lock->files.directory,
		    tries % 2 == 0 ? lock->id.entry : lock->files.state->away, FILE_FLAGS, 0);
		if (fd < 0 && errno != ENOENT)
			break;
	}
	return fd;
}

/* Returns TAKEN; BUSY if another process has FD flocked or, with SLEEP, a signal ended the sleep;
 * or FAILED. */
static enum outcome flock_file(int fd, enum wait wait, struct error *error)
{
	if (!FAULT_POINT("rename.flock") &&
	    (wait == TRY ? call_try_flock(fd) : flock(fd, LOCK_EX)) == 0)
		return TAKEN;
	if (errno == EWOULDBLOCK || errno == EINTR)
		return BUSY;
	return error_set(error, ERROR_UNAVAILABLE,
	    "use -m link or excl: flock(2), which guards the lock file, fails here");
}

/* --init: make the file, unless there is one.  Flock it before it gets its name: so no process can
 * take it before we know that there is no file named LOCK.held. */
static int make_file(struct lock *lock, struct error *error)
{
	struct file_lock *file = lock->files.state;
	const mode_t mode = lock->spec->create_mode;
	struct stat other;
	int result = 0;
	int fd;

	/* Without /proc a file that was made without a name cannot be given one. */
	if (access("/proc/self/fd", F_OK) != 0)
		file->named = true;
	fd = publish_set_up(lock, lockdir_create_file(lock, file->temporary, mode), mode);
	if (fd < 0)
		return lockdir_failed(error, ERROR_CREATE, "cannot make the lock file");
	if (flock_file(fd, TRY, error) == FAILED)
		result = -1;
	else if (publish_link(lock, fd) == 0) {
		if (fstatat(lock->files.directory, file->away, &other, 0) == 0)
			call_unlink(lock->files.directory, lock->id.entry, 0);
	} else if (errno != EEXIST)
		result = lockdir_failed(error, ERROR_CREATE, "cannot make the lock file");
	if (file->temporary[0] != '\0')
		call_unlink(lock->files.directory, file->temporary, 0);
	file->temporary[0] = '\0';
	close(fd);
	return result;
}

/* Rename the file, which is under our flock, from FROM to TO, which is not replaced.  Without
 * RENAME_NOREPLACE, our flock on the only file keeps other semlocks from making TO between
 * fstatat(2) and renameat(2).  Returns 0, or -1 with errno set. */
static int move_file(const struct lock *lock, const char *from, const char *to)
{
	struct stat other;
	int result;

	UNINTERRUPTED(result,
	    FAULT_POINT("rename.rename") ? -1 : rename_noreplace(lock->files.directory, from, to));
	if (result == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	if (fstatat(lock->files.directory, to, &other, AT_SYMLINK_NOFOLLOW) == 0) {
		/* a script was faster */
		errno = lockdir_same(lock, from, lock->fd) ? EEXIST : ENOENT;
		return -1;
	}
	UNINTERRUPTED(result, renameat(lock->files.directory, from, lock->files.directory, to));
	return result;
}

/* Is LOCK->fd, which is at home, a lock file of this method?  Our record will be written over its
 * contents: they must be empty, a record that was not erased (RECORD_FULL), or a script's PID. */
static int check_file(const struct lock *lock, struct error *error)
{
	const int64_t longest_pid = 16;
	struct record record;
	struct stat status;

	lock->files.state->object->read(lock->fd, &record);
	if (record.kind == RECORD_EMPTY || record.kind == RECORD_FULL ||
	    (record.kind == RECORD_PID && record.host[0] == '\0' && fstat(lock->fd, &status) == 0 &&
		status.st_size <= longest_pid))
		return 0;
	return error_plain(error, ERROR_OPEN,
	    "not a lock file: it has contents that locking would overwrite; left untouched");
}

static int rename_cannot_open(const struct lock *lock, struct error *error)
{
	switch (errno) {
	case ENOENT:
		return error_plain(error, ERROR_OPEN,
		    "no lock file exists, neither under this name nor with .held appended: "
		    "create it once, with --init");
	case ELOOP:
	case ENXIO:
	case EISDIR:
		return lockdir_not_a_lock(lock, error);
	}
	return lockdir_failed(error, ERROR_OPEN, "cannot open the lock file");
}

/* Does LOCK->fd have its second name, LOCK.held? */
static bool is_away(const struct lock *lock)
{
	return lockdir_same(lock, lock->files.state->away, lock->fd);
}

static int rename_prepare(struct lock *lock, struct error *error)
{
	struct stat status;
	int fd;

	if (lock->fd >= 0)
		return 0;
	fd = open_file(lock);
	if (fd < 0 && errno == ENOENT && lock->spec->init) {
		if (make_file(lock, error) != 0)
			return -1;
		fd = open_file(lock);
	}
	if (fd >= 0)
		fd = lock->fd = descriptor_above_standard(fd);
	if (fd < 0)
		return rename_cannot_open(lock, error);
	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
		errno = ENXIO;
		return rename_cannot_open(lock, error);
	}
	lock->files.state->inherited = lock->child->pid == 0 && lock->child->inherits;
	return 0;
}

/* Close the file.  Unlock it first: the command, which waits at its start barrier, shares our flock
 * and would keep the file flocked. */
static void rename_close(struct lock *lock)
{
	flock(lock->fd, LOCK_UN);
	close(lock->fd);
	lock->fd = -1;
}

/* ---- taking it ---- */

static int rename_write(struct lock *lock, struct error *error)
{
	int result;

	/* empty it: it may contain a script's PID, or a record that was not erased */
	UNINTERRUPTED(result, ftruncate(lock->fd, 0));
	if (result != 0)
		return error_set(error, ERROR_CREATE, "cannot write the lock file");
	return publish_record(lock, lock->fd, error);
}

/* The file could not be renamed, errno says why.  ENOENT: a script was faster. */
static enum outcome rename_failed(struct lock *lock, struct error *error)
{
	int errnum = errno;

	rename_close(lock);
	errno = errnum;
	if (errno == ENOENT)
		return AGAIN;
	if (errno == EEXIST)
		return error_plain(error, ERROR_OPEN,
		    "two lock files exist, this one and one with .held appended: remove one");
	return lockdir_failed(error, ERROR_CREATE, "cannot rename the lock file");
}

/* Our record must not stay in a file that is not ours. */
static void rename_erase(struct lock *lock)
{
	int errnum = errno, result;

	UNINTERRUPTED(result, ftruncate(lock->fd, 0));
	if (result != 0)
		CRASH_POINT("rename.not-erased"); /* no harm: the next holder writes over it */
	errno = errnum;
}

/* Take the lock: the file is at home, and under our flock. */
static enum outcome rename_away(struct lock *lock, struct error *error)
{
	if (!publish_describe(lock)) {
		flock(lock->fd, LOCK_UN); /* the next attempt may come after a wait in the queue */
		return NEEDS_CHILD;
	}
	if (rename_write(lock, error) != 0) {
		rename_erase(lock); /* check_file() refuses half a record */
		return FAILED;
	}
	CRASH_POINT("rename.written");
	if (move_file(lock, lock->id.entry, lock->files.state->away) != 0) {
		rename_erase(lock);
		return rename_failed(lock, error);
	}
	lock->files.state->life = OBJECT_HELD;
	CRASH_POINT("rename.moved");
	return TAKEN;
}

/* The holder is dead: rename the file back, and take the lock.  If we may not rename it (another
 * user's file in a sticky directory), wait instead, because we could not release the lock
 * either. */
static enum outcome rename_back(struct lock *lock, enum wait wait, struct error *error)
{
	if (move_file(lock, lock->files.state->away, lock->id.entry) == 0) {
		CRASH_POINT("rename.fetched");
		return rename_away(lock, error);
	}
	if (errno != EPERM && errno != EACCES)
		return rename_failed(lock, error);
	error_set(error, ERROR_CREATE, "it may be taken over, but its file cannot be renamed");
	return takeover_wait(lock, lock->fd, wait, 0);
}

/* A script only renames the file.  If RECORD, in a file with STATUS, is much older than the rename,
 * it may be an earlier holder's, and the rename was the last sign of life. */
static void note_renaming(struct record *record, struct stat *status)
{
	record->earlier = status->st_ctim.tv_sec > status->st_mtim.tv_sec + 10;
	if (record->earlier || record->kind != RECORD_FULL)
		takeover_note_naming(status);
}

/* May the lock, whose file is away, be taken over?  HOLDER becomes a living process to wait for; 0:
 * none is known. */
static bool rename_is_left(struct lock *lock, pid_t *holder)
{
	struct stat status;
	struct record record;
	enum verdict verdict;

	*holder = 0;
	lockdir_read_record(lock->fd, &record);
	if (fstat(lock->fd, &status) != 0)
		return false; /* nothing proves that it was left behind */
	note_renaming(&record, &status);
	verdict = takeover_judge(lock, &record, &status, 0);
	*holder = verdict == ALIVE ? record.pid : 0;
	return takeover_allowed(lock, verdict, &status);
}

static enum outcome rename_attempt(struct lock *lock, enum wait wait, struct error *error)
{
	enum outcome outcome = flock_file(lock->fd, wait, error);
	pid_t holder;
	bool left;

	if (outcome != TAKEN)
		return outcome;
	CRASH_POINT("rename.flocked");
	if (lockdir_is_ours(lock))
		return check_file(lock, error) == 0 ? rename_away(lock, error) : FAILED;
	if (!is_away(lock)) { /* another file has the name */
		rename_close(lock);
		return AGAIN;
	}
	left = rename_is_left(lock, &holder);
	CRASH_POINT("rename.judged");
	return left ? rename_back(lock, wait, error) : takeover_wait(lock, lock->fd, wait, holder);
}

static enum outcome rename_take(struct lock *lock, enum wait wait, struct error *error)
{
	enum outcome outcome;

	do {
		if (rename_prepare(lock, error) != 0)
			return FAILED;
		if (wait == SLEEP && !publish_describe(lock))
			return NEEDS_CHILD;
		outcome = rename_attempt(lock, wait, error);
	} while (outcome == AGAIN);
	return outcome;
}

static enum outcome rename_idle(struct lock *lock, struct error *error)
{
	pid_t holder;
	bool idle;

	if (rename_prepare(lock, error) != 0 || flock_file(lock->fd, TRY, error) != TAKEN)
		return BUSY;
	idle = lockdir_is_ours(lock) || (is_away(lock) && rename_is_left(lock, &holder));
	flock(lock->fd, LOCK_UN);
	return idle ? TAKEN : BUSY;
}

/* ---- giving it back ---- */

static int rename_remove(struct lock *lock, int fd)
{
	(void)fd;
	if (move_file(lock, lock->files.state->away, lock->id.entry) != 0)
		return -1;
	CRASH_POINT("rename.back");
	rename_erase(lock);
	return 0;
}

/* The file is away or at home.  A lookup during a rename(2) may find neither name: look again. */
static int rename_inspect(const struct lock *lock, struct lock_info *info, struct error *error)
{
	struct stat status;

	for (int tries = 0; tries < 100; tries++) {
		if (inspect_name(lock, lock->files.state->away, info, error) != 0)
			return -1;
		if (info->there) {
			note_renaming(&info->record, &info->status);
			return 0;
		}
		if (fstatat(lock->files.directory, lock->id.entry, &status, AT_SYMLINK_NOFOLLOW) ==
		    0)
			return S_ISREG(status.st_mode) ? 0 : lockdir_not_a_lock(lock, error);
	}
	return error_plain(error, ERROR_OPEN,
	    "no lock file exists, neither under this name nor with .held appended");
}

static const struct object rename_object = {
    .what = "a file made by --init",
    .type = S_IFREG,
    .read = lockdir_read_record,
    .is_ours = is_away,
    .remove = rename_remove,
    .beat = object_beat,
};

const struct method method_rename = {
    .name = "rename",
    .can = CAN_MODE | NEEDS_INIT,
    FILE_METHOD_COMMON,
    .object = &rename_object,
    .open = rename_open,
    .prepare = rename_prepare,
    .take = rename_take,
    .idle = rename_idle,
    .inspect = rename_inspect,
};
