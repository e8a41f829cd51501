/* SPDX-License-Identifier: MIT */
/* One file with two names: it is called LOCK ("at home") while the lock is free.  To take the lock is to
 * rename the file to LOCK.held ("away"), to release it is to rename it back.  The holder has the file
 * under flock(2) as well: a file that is away and not flocked was a dead holder's.
 *
 * The record is written before the file goes away, and erased after it has come back: it is never
 * away without one.  Only --init makes the file, because neither name may show during a rename. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/crash_points.h"
#include "sys/files.h"
#include "methods/file/filemethods.h"
#include "methods/file/rename_file.h"

static int rename_open(struct lock *lock, struct error *error)
{
	if (lockdir_open(lock, error) != 0)
		return -1;
	if (strlen(lock->id.entry) <= 240)
		return 0;
	errno = ENAMETOOLONG;
	return error_set(error, ERROR_OPEN, "cannot have a name beside it");
}

/* ---- the file ---- */

static int rename_cannot_open(const struct lock *lock, struct error *error)
{
	switch (errno) {
	case ENOENT:
		return error_plain(error, ERROR_OPEN,
		    "there is no lock file, neither under this name nor with .held behind it: "
		    "--init makes it, once");
	case ELOOP:
	case ENXIO:
	case EISDIR:
		return lockdir_not_a_lock(lock, error);
	}
	return lockdir_failed(error, ERROR_OPEN, "cannot open the lock file");
}

/* Does LOCK.held mean the file that is open as LOCK->fd? */
static bool is_held(const struct lock *lock)
{
	char held[NAME_SIZE];

	return lockdir_same(lock, rename_file_held_name(lock, held), lock->fd);
}

static int rename_prepare(struct lock *lock, struct error *error)
{
	struct stat status;
	int fd;

	if (lock->fd >= 0)
		return 0;
	fd = rename_file_open(lock);
	if (fd < 0 && errno == ENOENT && lock->spec->init) {
		if (rename_file_make(lock, error) != 0)
			return -1;
		fd = rename_file_open(lock);
	}
	if (fd >= 0)
		fd = lock->fd = descriptor_above_standard(fd);
	if (fd < 0)
		return rename_cannot_open(lock, error);
	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
		errno = ENXIO;
		return rename_cannot_open(lock, error);
	}
	lock->file->inherited = lock->child->pid == 0 && lock->child->inherits;
	return 0;
}

/* The command, at its start barrier, shares our flock: LOCK_UN, or it would keep the file from us. */
static void rename_close(struct lock *lock)
{
	flock(lock->fd, LOCK_UN);
	close(lock->fd);
	lock->fd = -1;
}

/* ---- taking it ---- */

static int rename_write(struct lock *lock, struct error *error)
{
	if (call_truncate(lock->fd, 0) != 0) /* another's, or one that was not erased */
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
		return error_plain(error, ERROR_OPEN, "there are two lock files, this one and one with .held "
						    "behind it: remove one");
	return lockdir_failed(error, ERROR_CREATE, "cannot rename the lock file");
}

/* Our record must not stay in a file that is not ours. */
static void rename_erase(struct lock *lock)
{
	int errnum = errno;

	if (call_truncate(lock->fd, 0) != 0)
		CRASH_POINT("rename.not-erased"); /* no harm: the next holder writes over it */
	errno = errnum;
}

/* The file is under our flock, and at home. */
static enum outcome rename_away(struct lock *lock, struct error *error)
{
	char held[NAME_SIZE];

	if (publish_describe(lock, error) != 0 || rename_write(lock, error) != 0) {
		rename_erase(lock); /* rename_file_check() refuses half a record */
		return FAILED;
	}
	CRASH_POINT("rename.written");
	if (rename_file_move(lock, lock->id.entry, rename_file_held_name(lock, held)) != 0) {
		rename_erase(lock);
		return rename_failed(lock, error);
	}
	lock->file->held = true;
	CRASH_POINT("rename.moved");
	return TAKEN;
}

/* Rename the file back for a dead holder.  A user who may not rename the file (another's, in a sticky directory)
 * could not release it either. */
static enum outcome rename_back(struct lock *lock, enum wait wait, struct error *error)
{
	char held[NAME_SIZE];

	if (rename_file_move(lock, rename_file_held_name(lock, held), lock->id.entry) == 0) {
		CRASH_POINT("rename.fetched");
		return rename_away(lock, error);
	}
	if (errno != EPERM && errno != EACCES)
		return rename_failed(lock, error);
	error_set(error, ERROR_CREATE, "its holder is dead, but the lock file cannot be renamed");
	return takeover_wait(lock, lock->fd, wait, 0);
}

/* May the lock, whose file is away, be taken over?  HOLDER becomes a living process to wait for; 0: none is
 * known. */
static bool rename_is_left(struct lock *lock, pid_t *holder)
{
	struct stat status;
	struct record record;
	enum verdict verdict;
	bool renamed;

	lockdir_read_record(lock->fd, &record);
	fstat(lock->fd, &status);
	/* A script only renames it: a record much older than that may be another's, whose end proves nothing. */
	renamed = status.st_ctim.tv_sec > status.st_mtim.tv_sec + 10;
	if (record.kind != RECORD_FULL)
		takeover_note_naming(&status);
	verdict = takeover_judge(lock, &record, &status, 0);
	if (renamed && verdict == DEAD) {
		takeover_note_naming(&status);
		verdict = UNKNOWN;
	}
	*holder = verdict == ALIVE ? record.pid : 0;
	return takeover_allowed(lock, verdict, &status);
}

static enum outcome rename_judge_held(struct lock *lock, enum wait wait, struct error *error)
{
	pid_t holder;
	bool left = rename_is_left(lock, &holder);

	CRASH_POINT("rename.judged");
	return left ? rename_back(lock, wait, error) : takeover_wait(lock, lock->fd, wait, holder);
}

static enum outcome rename_attempt(struct lock *lock, enum wait wait, struct error *error)
{
	enum outcome outcome = rename_file_flock(lock->fd, wait, error);

	if (outcome != TAKEN)
		return outcome;
	CRASH_POINT("rename.flocked");
	if (lockdir_is_ours(lock))
		return rename_file_check(lock, error) == 0 ? rename_away(lock, error) : FAILED;
	if (is_held(lock))
		return rename_judge_held(lock, wait, error);
	rename_close(lock); /* another file has the name */
	return AGAIN;
}

static enum outcome rename_take(struct lock *lock, enum wait wait, struct error *error)
{
	enum outcome outcome;

	do {
		if (rename_prepare(lock, error) != 0)
			return FAILED;
		if (wait == SLEEP && publish_describe(lock, error) != 0)
			return FAILED;
		outcome = rename_attempt(lock, wait, error);
	} while (outcome == AGAIN);
	return outcome;
}

static enum outcome rename_idle(struct lock *lock, struct error *error)
{
	pid_t holder;
	bool idle;

	if (rename_prepare(lock, error) != 0 || rename_file_flock(lock->fd, TRY, error) != TAKEN)
		return BUSY;
	idle = lockdir_is_ours(lock) || (is_held(lock) && rename_is_left(lock, &holder));
	flock(lock->fd, LOCK_UN);
	return idle ? TAKEN : BUSY;
}

/* ---- giving it back ---- */

static int rename_remove(struct lock *lock, int fd)
{
	char held[NAME_SIZE];

	(void)fd;
	if (rename_file_move(lock, rename_file_held_name(lock, held), lock->id.entry) != 0)
		return -1;
	CRASH_POINT("rename.back");
	rename_erase(lock);
	return 0;
}

static const struct object rename_object = {
    .what = "a file made by --init",
    .type = S_IFREG,
    .read = lockdir_read_record,
    .is_ours = is_held,
    .remove = rename_remove,
    .beat = object_beat,
};

const struct method method_rename = {
    .name = "rename",
    .can = CAN_MODE | LEAVES_RECORD | NEEDS_INIT,
    FILE_METHOD_COMMON,
    .object = &rename_object,
    .open = rename_open,
    .prepare = rename_prepare,
    .take = rename_take,
    .idle = rename_idle,
    .inspect = inspect_rename,
};
