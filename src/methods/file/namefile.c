#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sys/crash_points.h"
#include "sys/retry.h"
#include "methods/file/takeover.h"
#include "methods/file/namefile.h"
#include "methods/file/foreign_holder.h"

int namefile_open(struct lock *lock, const struct object *object, struct error *error)
{
	const char *slash = strrchr(lock->name, '/');
	const char *base = slash == NULL ? lock->name : slash + 1;
	struct namefile *file;

	lock->fd = -1;
	if (*base == '\0' || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
		return error_say(error, ERROR_USAGE, "names a directory, and no lock in it");
	file = calloc(1, sizeof *file);
	if (file == NULL)
		return error_set(error, ERROR_SYSTEM, "no memory");
	*file = (struct namefile){.object = object, .directory = -1, .base = base, .second = -1, .notify = -1};
	lock->file = file;
	lock->entry = base;
	return namefile_open_directory(lock, error);
}

int namefile_cannot_create(struct error *error, const char *what)
{
	switch (errno) {
	case ENOMEM:
	case EMFILE:
	case ENFILE:
	case ENOLCK:
		return error_set(error, ERROR_SYSTEM, "%s", what);
	}
	return error_set(error, ERROR_CREATE, "%s", what);
}

bool namefile_same(const struct namefile *file, const char *name, int fd)
{
	struct stat named, open;

	return fstat(fd, &open) == 0 &&
	       fstatat(file->directory, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

int64_t namefile_mtime(const struct stat *status)
{
	return (int64_t)status->st_mtim.tv_sec * SECOND + status->st_mtim.tv_nsec;
}


size_t namefile_slurp(int fd, char *text, size_t size)
{
	ssize_t got;
	size_t used = 0;

	while (used < size && (got = pread(fd, text + used, size - used, (off_t)used)) != 0) {
		if (got < 0 && errno != EINTR)
			break;
		if (got > 0)
			used += (size_t)got;
	}
	return used;
}

/* ---- our own object ---- */

/* Who is to hold the lock has to be known before its record is written, and inherits only
 * what is there before it is started. */
int namefile_prepare(struct lock *lock, struct error *error)
{
	struct namefile *file = lock->file;

	if (lock->fd >= 0)
		return 0;
	if (file->object->make(lock, error) != 0)
		return -1;
	file->inherited = lock->child->pid == 0 && lock->child->inherits;
	CRASH_POINT("namefile.made");
	return 0;
}

int namefile_describe(struct lock *lock, struct error *error)
{
	struct child *child = lock->child;

	if (child->pid == 0) {
		pid_t pid = child->start(child, error);

		if (pid < 0)
			return -1;
		child->pid = pid;
	}
	record_describe(&lock->file->record, child->pid);
	lock->file->record.flocked = lock->file->local && lock->file->inherited;
	return 0;
}

/* A3, D1: nobody can hold it, unless it had a name in the meantime that others could open. */
static int lock_object(struct lock *lock, struct error *error)
{
	static const struct timespec a_moment = {0, MILLISECOND};

	for (int tries = 0; call_try_flock(lock->fd) != 0; tries++) {
		if (errno == EWOULDBLOCK && tries < 1000)
			nanosleep(&a_moment, NULL);
		else if (!lock->file->local)
			return 0; /* no flock here: then the record alone has to prove life */
		else
			return error_set(error, ERROR_LOCKABLE, "cannot lock what we have made");
	}
	return 0;
}

static int get_ready(struct lock *lock, struct error *error)
{
	struct namefile *file = lock->file;

	if (file->ready)
		return 0;
	if (namefile_prepare(lock, error) != 0 || namefile_describe(lock, error) != 0 ||
	    file->object->write(lock, error) != 0) /* A2, D1 */
		return -1;
	CRASH_POINT("namefile.written");
	if (lock_object(lock, error) != 0)
		return -1;
	CRASH_POINT("namefile.flocked");
	file->ready = true;
	return 0;
}

/* On some file systems (FUSE) a flock taken through one name, or before there was one, does
 * not meet one taken through another.  Then a second one, through the lock's own name, has
 * to be held as well: it is what others will meet. */
static void hold_by_name(struct lock *lock)
{
	struct namefile *file = lock->file;
	int kind = file->object->type == S_IFDIR ? O_DIRECTORY : O_NONBLOCK;

	if (file->local)
		return;
	file->second = call_open(file->directory, file->base, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | kind, 0);
	if (file->second < 0 || call_try_flock(file->second) == 0)
		return;
	close(file->second);
	file->second = -1;
}

static enum outcome publish(struct lock *lock, struct error *error)
{
	enum outcome outcome = lock->file->object->publish(lock, error);

	if (outcome == TAKEN) {
		lock->file->held = true;
		CRASH_POINT("namefile.published");
		hold_by_name(lock);
	}
	return outcome;
}

/* With TRY, the name is looked at first: a refusal costs no process. */
enum outcome namefile_take(struct lock *lock, enum wait wait, struct error *error)
{
	enum outcome outcome = wait == TRY ? existing_inspect(lock, TRY, error) : AGAIN;

	while (outcome == AGAIN) {
		if (get_ready(lock, error) != 0)
			return FAILED;
		outcome = publish(lock, error);
		if (outcome == AGAIN)
			outcome = existing_inspect(lock, wait, error);
	}
	return outcome;
}

/* R1: not ours any more if the name means something else.  R2: the name goes first; then,
 * R3, the flock, for all who share it: waiters sleep in it, and what the command has left
 * behind may have inherited it. */
static void remove_object(struct lock *lock)
{
	struct namefile *file = lock->file;

	if (namefile_same(file, file->base, lock->fd)) {
		CRASH_POINT("namefile.release");
		if (file->object->remove(lock, lock->fd) != 0 && errno == ENOENT)
			lock->lost = true;
	} else {
		lock->lost = true;
	}
	file->held = false;
	CRASH_POINT("namefile.released");
	flock(lock->fd, LOCK_UN);
}

static void discard(const struct namefile *file, const char *name, int fd)
{
	if (file->object != NULL && file->object->type == S_IFDIR) {
		call_unlink(fd, "pid", 0);
		call_unlink(file->directory, name, AT_REMOVEDIR);
	} else {
		call_unlink(file->directory, name, 0);
	}
}

/* An attacker who is fast can flock a file that he sees, and keep us from writing it; then
 * it is given up. */
enum outcome namefile_claim(const struct lock *lock, int fd, struct error *error)
{
	static const struct timespec a_moment = {0, MILLISECOND};

	for (int tries = 0; call_try_flock(fd) != 0 && errno == EWOULDBLOCK; tries++) {
		if (tries == 1000) {
			error_set(error, ERROR_CREATE, "somebody keeps the new lock file locked");
			if (namefile_same(lock->file, lock->file->base, fd)) /* or it is another's by now */
				call_unlink(lock->file->directory, lock->file->base,
				    lock->file->object->type == S_IFDIR ? AT_REMOVEDIR : 0);
			return FAILED;
		}
		nanosleep(&a_moment, NULL);
	}
	return namefile_same(lock->file, lock->file->base, fd) ? TAKEN : AGAIN;
}

/* The command was started before, and has not got this descriptor: so the flock does not
 * last as long as it does, and the record says so. */
void namefile_replace(struct lock *lock, int fd)
{
	struct namefile *file = lock->file;

	if (file->temporary[0] != '\0')
		discard(file, file->temporary, lock->fd);
	file->temporary[0] = '\0';
	close(lock->fd);
	lock->fd = fd;
	file->inherited = file->record.flocked = false;
}

void namefile_forget(struct lock *lock)
{
	struct namefile *file = lock->file;

	if (file == NULL)
		return;
	foreign_holder_forget(file);
	if (file->temporary[0] != '\0')
		discard(file, file->temporary, lock->fd);
	if (file->second >= 0)
		close(file->second);
	if (lock->fd >= 0)
		close(lock->fd);
	if (file->directory >= 0)
		close(file->directory);
	free(file);
	lock->file = NULL;
	lock->entry = NULL;
	lock->fd = -1;
}

/* What has been removed once cannot be given a name again: if the lock is taken again, after it had
 * to be given back, another object is made.  The command, at its gate, has not inherited that one. */
static void forget_object(struct lock *lock)
{
	struct namefile *file = lock->file;

	if (file->second >= 0)
		close(file->second);
	close(lock->fd);
	file->second = lock->fd = -1;
	file->ready = false;
}

int namefile_drop(struct lock *lock, struct error *error)
{
	const struct object *object = lock->file->object;

	(void)error;
	if (lock->file->held && object->let_go != NULL) {
		object->let_go(lock);
	} else if (lock->file->held) {
		remove_object(lock);
		forget_object(lock);
	}
	return 0;
}

void namefile_release(struct lock *lock)
{
	struct error ignored;

	if (lock->file != NULL)
		namefile_drop(lock, &ignored);
	namefile_forget(lock);
}

/* A lock that was named twice is held once; the other has nothing to lose. */
bool namefile_owned(struct lock *lock)
{
	return !lock->file->held || namefile_same(lock->file, lock->file->base, lock->fd);
}

void namefile_beat(struct lock *lock)
{
	futimens(lock->fd, NULL); /* by descriptor: never somebody else's */
}
