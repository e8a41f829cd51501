/* SPDX-License-Identifier: MIT */
/* The I steps are those of the model tests/models/semlock_file.pml, which proves their order: flock the
 * object, then judge its record, and only THEN compare name and descriptor.  In any other order a
 * lock can be removed that another process has taken in the meantime. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "sys/crash_points.h"
#include "sys/files.h"
#include "sys/process.h"
#include "methods/file/takeover.h"
#include "methods/file/foreign_holder.h"

/* An empty file of this age may be about to be written.  It must not even be flocked: waiters could
 * keep its maker out of it for ever. */
#define GRACE (2 * SECOND)

struct existing {
	int fd;
	struct stat status;
	struct record record;
};

/* In ns; -1: unknown. */
static int64_t age_of(const struct lock *lock, const struct stat *status, int64_t now)
{
	if (now == 0)
		now = lockdir_now(lock);
	return now < 0 ? -1 : now - lockdir_mtime(status);
}

void takeover_note_naming(struct stat *status)
{
	const struct timespec *changed = &status->st_ctim, *modified = &status->st_mtim;

	if (changed->tv_sec > modified->tv_sec ||
	    (changed->tv_sec == modified->tv_sec && changed->tv_nsec > modified->tv_nsec))
		status->st_mtim = status->st_ctim;
}

void takeover_note_linking(struct stat *status)
{
	if (S_ISREG(status->st_mode) && status->st_nlink > 1)
		takeover_note_naming(status);
}

enum verdict takeover_judge(const struct lock *lock, const struct record *record,
    const struct stat *status, int64_t now)
{
	struct facts facts = {
	    .local = lock->file->local,
	    .host_id = host_id(),
	};
	int64_t age;

	if (record->kind == RECORD_EMPTY && S_ISREG(status->st_mode)) {
		age = age_of(lock, status, now);
		facts.young = age > -GRACE && age < GRACE;
		facts.before_boot = status->st_mtim.tv_sec < facts.host_id->booted;
	}
	record_verdict_ask(record, &facts, lock->child->pid);
	return record_verdict(record, &facts);
}

bool takeover_allowed(struct lock *lock, enum verdict verdict, const struct stat *status)
{
	if (verdict == DEAD)
		return true;
	return verdict == UNKNOWN && lock->spec->stale > 0 && age_of(lock, status, 0) > lock->spec->stale;
}

static enum outcome takeover_cannot_open(const struct lock *lock, struct error *error)
{
	struct stat there;

	switch (errno) {
	case ENOENT:
	case EINTR:
	case ESTALE:
		return AGAIN;
	case EACCES:
	case EPERM:
		if (fstatat(lock->directory, lock->id.entry, &there, AT_SYMLINK_NOFOLLOW) == 0)
			return BUSY; /* held, by a process of another user */
		if (errno == ENOENT)
			return AGAIN;
		return error_set(error, ERROR_OPEN, "cannot look into its directory");
	case ELOOP:
	case EMLINK:
	case ENXIO:
	case ENOTDIR:
		return lockdir_not_a_lock(lock, error);
	}
	return lockdir_failed(error, ERROR_OPEN, "cannot look at the lock");
}

/* NFS: LOCK_EX needs a descriptor that is open for writing. */
static int open_name(const struct lock *lock)
{
	int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, fd = -1;

	if (lock->file->object->type == S_IFDIR)
		return openat(lock->directory, lock->id.entry, O_RDONLY | O_DIRECTORY | flags);
	if (!lock->file->local)
		fd = openat(lock->directory, lock->id.entry, O_RDWR | flags);
	return fd >= 0 ? fd : openat(lock->directory, lock->id.entry, O_RDONLY | flags);
}

/* I1: open what has the lock's name.  TAKEN: it is open as EXISTING->fd. */
static enum outcome open_existing(struct lock *lock, struct existing *existing, struct error *error)
{
	existing->fd = open_name(lock);
	if (existing->fd < 0)
		return takeover_cannot_open(lock, error);
	if (fstat(existing->fd, &existing->status) != 0)
		return takeover_cannot_open(lock, error); /* FUSE and NFS: an open file can be gone */
	if ((existing->status.st_mode & S_IFMT) != lock->file->object->type)
		return lockdir_not_a_lock(lock, error);
	return TAKEN;
}

static enum verdict judge_existing(struct lock *lock, struct existing *existing)
{
	lock->file->object->read(existing->fd, &existing->record);
	if (lockdir_status(lock, existing->fd, "", &existing->status) != 0)
		return ALIVE; /* its age is not known */
	takeover_note_linking(&existing->status);
	return takeover_judge(lock, &existing->record, &existing->status, 0);
}

enum outcome takeover_wait(struct lock *lock, int fd, enum wait wait, pid_t pid)
{
	if (fd >= 0)
		flock(fd, LOCK_UN); /* or others would take us, asleep, for its holder */
	return wait == TRY ? BUSY : foreign_holder_await(lock, pid, false);
}

/* On the server itself, the flock of an NFS client is a record lock: a PID that is dead here may be alive
 * there. */
static bool has_record_lock(int fd)
{
	struct flock bytes = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(fd, F_OFD_GETLK, &bytes) == 0 && bytes.l_type != F_UNLCK;
}

/* I3: flock the object.  A waiter sleeps in the flock of a semlock's lock: one wake-up, on release or death. */
static enum outcome flock_existing(struct lock *lock, struct existing *existing, enum wait wait)
{
	if (call_try_flock(existing->fd) == 0)
		return lock->file->local && has_record_lock(existing->fd) ? takeover_wait(lock, existing->fd, wait, 0)
									 : TAKEN;
	if (errno != EWOULDBLOCK || lock->file->by_age)
		return takeover_wait(lock, existing->fd, wait, 0); /* no flock here: no safe takeover */
	if (wait == TRY || flock(existing->fd, LOCK_EX) != 0)
		return BUSY;
	return lockdir_same(lock, lock->id.entry, existing->fd) ? TAKEN : AGAIN;
}

/* I6: remove the name.  In a sticky directory only the owner may remove it. */
static enum outcome remove_existing(struct lock *lock, const struct existing *existing, enum wait wait,
    struct error *error)
{
	if (lock->file->object->remove(lock, existing->fd) != 0 && errno != ENOENT) {
		if (existing->record.pid > 0)
			error_set(error, ERROR_CREATE, "its holder, process %ld, is dead, but the lock cannot be taken away",
			    (long)existing->record.pid);
		else
			error_set(error, ERROR_CREATE, "it names no process, and cannot be taken away");
		return takeover_wait(lock, existing->fd, wait, 0);
	}
	CRASH_POINT("takeover.removed");
	lockdir_sweep(lock);
	return AGAIN;
}

static enum outcome inspect_existing(struct lock *lock, struct existing *existing, enum wait wait,
    struct error *error)
{
	enum verdict verdict = judge_existing(lock, existing); /* I2: judge its record */
	enum outcome outcome;

	if (existing->record.kind == RECORD_ABSENT)
		return error_plain(error, ERROR_OPEN, "is a directory of other files, and no lock: left alone");
	if (existing->record.kind == RECORD_EMPTY && verdict == ALIVE)
		return takeover_wait(lock, existing->fd, wait, 0);
	if (wait == TRY && !takeover_allowed(lock, verdict, &existing->status))
		return BUSY;
	if (lock->file->by_age && !takeover_allowed(lock, verdict, &existing->status))
		return takeover_wait(lock, existing->fd, wait, verdict == ALIVE ? record_awaited(&existing->record) : 0);
	outcome = flock_existing(lock, existing, wait); /* I3: flock it */
	if (outcome != TAKEN)
		return outcome;
	CRASH_POINT("takeover.guarded");
	verdict = judge_existing(lock, existing); /* I4: judge it again */
	if (!takeover_allowed(lock, verdict, &existing->status))
		return takeover_wait(lock, existing->fd, wait, verdict == ALIVE ? record_awaited(&existing->record) : 0);
	CRASH_POINT("takeover.judged");
	if (!lockdir_same(lock, lock->id.entry, existing->fd)) /* I5: compare the name after I4, the verdict */
		return AGAIN;
	CRASH_POINT("takeover.compared");
	return remove_existing(lock, existing, wait, error); /* I6: remove the name */
}

enum outcome takeover_attempt(struct lock *lock, enum wait wait, struct error *error)
{
	struct existing existing = {.fd = -1};
	enum outcome outcome = open_existing(lock, &existing, error);

	if (outcome == TAKEN)
		outcome = inspect_existing(lock, &existing, wait, error);
	else if (outcome == BUSY)
		outcome = takeover_wait(lock, existing.fd, wait, 0);
	if (existing.fd >= 0)
		close(existing.fd); /* I7: release the flock */
	return outcome;
}

enum outcome takeover_idle(struct lock *lock, struct error *error)
{
	struct existing existing = {.fd = -1};
	enum outcome outcome = open_existing(lock, &existing, error);
	bool idle = outcome == AGAIN;

	if (outcome == TAKEN)
		idle = takeover_allowed(lock, judge_existing(lock, &existing), &existing.status) &&
		       call_try_flock(existing.fd) == 0;
	if (existing.fd >= 0)
		close(existing.fd);
	return idle ? TAKEN : BUSY;
}
