/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "sys/crash_points.h"
#include "sys/files.h"
#include "methods/file/filemethods.h"

/* ---- making it ---- */

int publish_set_up(const struct lock *lock, int fd, mode_t mode)
{
	if (fd >= 0)
		fd = descriptor_above_standard(fd);
	if (fd < 0 || !lock->spec->exact_mode || fchmod(fd, mode) == 0)
		return fd;
	close(fd);
	return -1;
}

int publish_link(const struct lock *lock, int fd)
{
	const char *temporary = lock->files.state->temporary;
	char path[40];
	int result;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	UNINTERRUPTED(result,
	    *temporary != '\0'
		? linkat(lock->files.directory, temporary, lock->files.directory, lock->id.entry, 0)
		: linkat(AT_FDCWD, path, lock->files.directory, lock->id.entry, AT_SYMLINK_FOLLOW));
	return result;
}

int publish_flock(int fd)
{
	for (int tries = 0; call_try_flock(fd) != 0; tries++) {
		if (errno != EWOULDBLOCK || tries == 1000)
			return -1;
		lockdir_nap(MILLISECOND);
	}
	return 0;
}

/* The object is made before the command is started, because the command inherits its descriptor;
 * the record is written after that, because it names the command. */
int publish_prepare(struct lock *lock, struct error *error)
{
	if (lock->fd >= 0 || lock->files.state->object->make == NULL)
		return 0;
	if (lock->files.state->object->make(lock, error) != 0)
		return -1;
	lock->files.state->inherited = lock->child->pid == 0 && lock->child->inherits;
	CRASH_POINT("publish.made");
	return 0;
}

bool publish_describe(struct lock *lock)
{
	if (lock->child->pid == 0)
		return false;
	record_describe(&lock->files.state->record, lock->child->pid);
	lock->files.state->record.flocked =
	    lock->files.state->local && lock->files.state->inherited;
	return true;
}

int publish_record(const struct lock *lock, int fd, struct error *error)
{
	char text[RECORD_LONGEST];
	const char *method = lock->files.state->object->pid_only ? NULL : lock->spec->method->name;
	size_t length = record_write(&lock->files.state->record, method, text);
	ssize_t put;

	UNINTERRUPTED(put,
	    FAULT_POINT("plainfile.write") ? -1 : descriptor_write(fd, text, length, 0));
	if (put == (ssize_t)length)
		return 0;
	if (put >= 0)
		errno = ENOSPC;
	return error_set(error, ERROR_CREATE, "cannot write the lock file");
}

/* Make our object ready to get its name.  Returns TAKEN, which means only that it is ready;
 * NEEDS_CHILD; or FAILED. */
static enum outcome make_ready(struct lock *lock, struct error *error)
{
	struct file_lock *file = lock->files.state;

	if (file->life != OBJECT_NONE)
		return TAKEN;
	if (publish_prepare(lock, error) != 0)
		return FAILED;
	if (!publish_describe(lock))
		return NEEDS_CHILD;
	if (lock->fd >= 0) {
		/* A2 and D1: write the record */
		if (file->object->write(lock, lock->fd, error) != 0)
			return FAILED;
		CRASH_POINT("publish.written");
		/* A3 and D1: flock the object.  Only if the object has a temporary name, another
		 * process can have opened and flocked it.  If the file system is not local,
		 * flock(2) may fail: then only the record shows that we live. */
		if (!file->by_age && publish_flock(lock->fd) != 0 && file->local)
			return error_set(error, ERROR_LOCKABLE, "cannot flock the new lock");
		CRASH_POINT("publish.flocked");
	}
	file->life = OBJECT_READY;
	return TAKEN;
}

/* If our object still has a temporary name, remove it. */
static void discard_temporary(struct lock *lock)
{
	char *name = lock->files.state->temporary;
	bool directory = lock->files.state->object->type == S_IFDIR;

	if (*name == '\0')
		return;
	if (directory && lockdir_same(lock, name, lock->fd))
		call_unlink(lock->fd, "pid", 0);
	call_unlink(lock->files.directory, name, directory ? AT_REMOVEDIR : 0);
	*name = '\0';
}

/* ---- publishing it ---- */

/* Close our object, which cannot get a name again once it was removed.  If the lock is given back
 * and taken again, we make a new object.  The command, which already waits at its start barrier,
 * does not inherit that. */
static void close_object(struct lock *lock)
{
	struct file_lock *file = lock->files.state;

	if (file->second >= 0)
		close(file->second);
	if (lock->fd >= 0)
		close(lock->fd);
	file->second = lock->fd = -1;
	file->life = OBJECT_NONE;
}

/* Flock our new object, which already has the lock's name.  An attacker can open it, and flock it
 * before we do: give up after a second.  If flock(2) does not work here, go on without. */
static enum outcome flock_empty(const struct lock *lock, struct error *error)
{
	if (publish_flock(lock->fd) == 0 || errno != EWOULDBLOCK)
		return lockdir_is_ours(lock) ? TAKEN : AGAIN;
	return error_set(error, ERROR_CREATE, "another process holds a flock on the new lock file");
}

/* The command was started before, and does not inherit FD.  So the flock may end before the command
 * does: write flock=0 into the record.  FD may have to be moved above the standard descriptors:
 * close our previous object first, to make room. */
enum outcome publish_empty(struct lock *lock, int fd, mode_t mode, struct error *error)
{
	enum outcome outcome;

	discard_temporary(lock);
	close_object(lock);
	if (fd < 0)
		fd = call_open(lock->files.directory, lock->id.entry,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	lock->fd = descriptor_above_standard(fd);
	if (lock->fd < 0)
		return errno == ENOENT
		           ? AGAIN
		           : lockdir_failed(error, ERROR_CREATE, "cannot open what we have made");
	outcome = flock_empty(lock, error);
	lock->files.state->inherited = lock->files.state->record.flocked = false;
	if (outcome == TAKEN && lock->spec->exact_mode && fchmod(lock->fd, mode) != 0)
		outcome = error_set(error, ERROR_CREATE, "cannot set the mode");
	if (outcome == TAKEN)
		outcome =
		    lock->files.state->object->write(lock, lock->fd, error) == 0 ? TAKEN : FAILED;
	/* Remove the name, unless it means another process's lock by now.  If that changes just
	 * after the comparison, AT_REMOVEDIR still fails for a directory with a record in it. */
	if (outcome == FAILED && lockdir_is_ours(lock))
		call_unlink(lock->files.directory, lock->id.entry,
		    lock->files.state->object->type == S_IFDIR ? AT_REMOVEDIR : 0);
	if (outcome == AGAIN)
		close_object(lock);
	return outcome;
}

bool publish_unsupported(void)
{
	switch (errno) {
	case EPERM:
	case EOPNOTSUPP:
	case EMLINK:
	case ENOSYS:
	case EINVAL:
	case EXDEV:
		return true;
	}
	return false;
}

/* D2: rename a directory to the lock's name.  (For a regular file, the third way of
 * plainfile.c.) */
enum outcome publish_renamed(struct lock *lock, struct error *error)
{
	int result;

	UNINTERRUPTED(result, FAULT_POINT("publish.rename")
				  ? -1
				  : rename_noreplace(lock->files.directory,
					lock->files.state->temporary, lock->id.entry));
	if (result != 0)
		return publish_unsupported() ? lock->files.state->object->make_empty(lock, error)
		                             : lockdir_not_named(error);
	lock->files.state->temporary[0] = '\0';
	return TAKEN;
}

/* On some file systems (FUSE) a flock taken through one name, or before the file had a name, does
 * not exclude one taken through another name.  There, flock the lock once more, through its own
 * name: that flock excludes others. */
static void flock_by_name(struct lock *lock)
{
	struct file_lock *file = lock->files.state;
	int kind = file->object->type == S_IFDIR ? O_DIRECTORY : O_NONBLOCK;

	if (file->local || file->by_age || lock->fd < 0)
		return;
	file->second = call_open(lock->files.directory, lock->id.entry,
	    O_RDONLY | O_NOFOLLOW | O_CLOEXEC | kind, 0);
	if (file->second < 0 || call_try_flock(file->second) == 0)
		return;
	close(file->second);
	file->second = -1;
}

/* The lock's name seems to mean another file than our object.  If that file's record names our
 * command, the file system gives a linked or renamed file another inode number (sshfs).  There, we
 * could not tell a lost lock from a held one: refuse to lock. */
static enum outcome refuse_identity(struct lock *lock, struct error *error)
{
	int fd = call_open(lock->files.directory, lock->id.entry,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	struct record record = {.kind = RECORD_JUNK};

	if (fd < 0)
		return AGAIN;
	lock->files.state->object->read(fd, &record);
	close(fd);
	if (record.pid != lock->files.state->record.pid)
		return AGAIN; /* another process has removed ours and taken the lock */
	call_unlink(lock->files.directory, lock->id.entry, 0);
	return error_plain(error, ERROR_UNAVAILABLE,
	    "on this file system, a file that is linked or renamed becomes another one: use -m "
	    "mkdir or symlink");
}

static enum outcome publish(struct lock *lock, struct error *error)
{
	enum outcome outcome = lock->files.state->object->publish(lock, error);

	if (outcome == TAKEN && !lock->files.state->local &&
	    lock->files.state->object->type == S_IFREG &&
	    (FAULT_POINT("publish.identity") || !lockdir_is_ours(lock)))
		outcome = refuse_identity(lock, error);
	if (outcome == TAKEN) {
		lock->files.state->life = OBJECT_HELD;
		CRASH_POINT("publish.published");
		if (lock->files.state->by_age && lock->fd >= 0)
			flock(lock->fd, LOCK_UN); /* which flock_empty() took */
		flock_by_name(lock);
	}
	return outcome;
}

/* With TRY, look at the name first: then no process is forked for a busy lock. */
enum outcome publish_take(struct lock *lock, enum wait wait, struct error *error)
{
	const struct object *object = lock->files.state->object;
	enum outcome outcome = wait == TRY ? object->attempt(lock, TRY, error) : AGAIN;
	enum outcome ready;

	while (outcome == AGAIN) {
		ready = make_ready(lock, error);
		if (ready != TAKEN)
			return ready;
		outcome = publish(lock, error);
		if (outcome == AGAIN)
			outcome = object->attempt(lock, wait, error);
	}
	return outcome;
}

/* ---- holding it, and letting go ---- */

/* ERRNUM is from a look at our lock's name: does it mean that the lock is another's, or gone?
 * EEXIST: another file has the name; EINVAL: no symbolic link has it.  EACCES and EIO say nothing
 * about the lock. */
static bool is_lost(int errnum)
{
	return errnum == ENOENT || errnum == ESTALE || errnum == EEXIST || errnum == EINVAL;
}

/* If the user names a lock twice, it is taken once: the second struct lock holds nothing that it
 * could lose. */
bool object_owned(struct lock *lock)
{
	return lock->files.state->life != OBJECT_HELD || lock->files.state->object->is_ours(lock) ||
	       !is_lost(errno);
}

void object_beat(struct lock *lock)
{
	futimens(lock->fd, NULL); /* by descriptor: never another holder's lock */
}

/* R1: if the name means another object, the lock was lost.  R2: remove the name, before the flock
 * is released.  R3: release the flock with LOCK_UN, not with close(2): waiters sleep in flock(2),
 * and a process that the command left behind may keep an inherited descriptor open. */
static void remove_object(struct lock *lock)
{
	const struct object *object = lock->files.state->object;
	/* With takeover by age, a process that has found our lock old may be about to remove
	 * whatever has its name.  Wait for it, for a second at most. */
	bool guarded =
	    !lock->files.state->by_age || publish_flock(lock->fd) == 0 || errno != EWOULDBLOCK;
	int removed = -1;

	if (guarded && object->is_ours(lock)) {
		CRASH_POINT("publish.release");
		removed = object->remove(lock, lock->fd);
	}
	if (removed != 0 && is_lost(errno))
		lock->end.lost = true;
	else if (removed != 0)
		lock->end.stuck = errno;
	lock->files.state->life = OBJECT_READY;
	CRASH_POINT("publish.released");
	if (lock->fd >= 0)
		flock(lock->fd, LOCK_UN);
}

int object_drop(struct lock *lock, struct error *error)
{
	(void)error; /* LOCK->end says why */
	if (lock->files.state->life != OBJECT_HELD)
		return 0;
	remove_object(lock);
	if (lock->files.state->object->make != NULL)
		close_object(lock); /* rename's file is used again */
	return 0;
}

void object_release(struct lock *lock)
{
	struct file_lock *file = lock->files.state;

	if (file == NULL)
		return;
	object_drop(lock, NULL);
	foreign_holder_forget(file);
	discard_temporary(lock);
	close_object(lock);
	if (lock->files.directory >= 0)
		close(lock->files.directory);
	free(file);
	lock->files.state = NULL;
	lock->id.entry = NULL;
}
