/* SPDX-License-Identifier: MIT */
/* A symbolic link whose target is the record.  A link cannot be flocked, so the holder counts as
 * dead when two processes are dead: the command, and the semlock that would release the lock.
 * Processes that take over from a dead holder exclude each other with the guard, a file beside the
 * link (.LOCK.guard): they flock it, and remove it afterwards.  The S steps are those of the model
 * tests/models/semlock_symlink.pml.
 *
 * A release without --stale takes no guard.  While we live, no process finds us dead, so none
 * removes our link.  Nor can a process that is stopped while it holds the guard delay us (STOP in
 * that model).
 *
 * With --stale, a waiter could remove our link because of its age.  So a release then takes the
 * guard, and waits for it for a second at most.  A sign of life takes the guard as well, and is
 * left out if another process holds it (tests/models/existlock.pml, RELGUARD and HBGUARD). */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sys/crash_points.h"
#include "sys/files.h"
#include "sys/process.h"
#include "methods/file/filemethods.h"

/* The link that has the lock's name. */
struct link_seen {
	char target[RECORD_LIMIT + 1];
	size_t length; /* bytes of TARGET */
	struct record record;
	struct stat status;
};

/* Read the link's target into EXISTING.  Returns false with errno set if the link cannot be read.
 * So do the next two functions.  They set ENOENT if the link has another target. */
static bool read_target(const struct lock *lock, struct link_seen *existing)
{
	ssize_t length = readlinkat(lock->files.directory, lock->id.entry, existing->target,
	    sizeof existing->target);

	existing->length = length < 0 ? 0 : (size_t)length;
	return length >= 0;
}

static bool symlink_is_unchanged(const struct lock *lock, const struct link_seen *existing)
{
	struct link_seen now;

	if (!read_target(lock, &now))
		return false;
	errno = ENOENT;
	return now.length == existing->length &&
	       memcmp(now.target, existing->target, now.length) == 0;
}

static bool symlink_is_ours(const struct lock *lock)
{
	struct link_seen ours;

	ours.length = record_write_line(&lock->files.state->record, ours.target);
	return symlink_is_unchanged(lock, &ours);
}

/* ---- the guard ---- */

/* Take LOCK's guard with FLOCK_FILE(), and put its name into NAME.  Returns its descriptor, or -1
 * with errno set: EWOULDBLOCK if another process holds it.  The process that held the guard before
 * us may remove it between our open and our flock: then open the guard again. */
static int guard_take(const struct lock *lock, char name[NAME_SIZE], int (*flock_file)(int fd))
{
	/* on NFS, LOCK_EX needs a descriptor that is open for writing */
	const int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY |
	                  (lock->files.state->local ? O_RDONLY : O_RDWR);
	int fd, errnum;

	snprintf(name, NAME_SIZE, ".%.200s.guard", lock->id.entry);
	for (;;) {
		do { /* first without O_CREAT: with it, fs.protected_regular can refuse the open */
			fd = openat(lock->files.directory, name, flags);
			if (fd < 0 && errno == ENOENT)
				fd = openat(lock->files.directory, name, flags | O_CREAT | O_EXCL,
				    lock->files.state->local ? 0444 : 0666);
		} while (fd < 0 && (errno == EEXIST || errno == EINTR));
		if (fd < 0)
			return -1;
		if (flock_file(fd) != 0)
			break;
		if (lockdir_same(lock, name, fd))
			return fd;
		if (errno != ENOENT) /* the comparison failed, and would fail again */
			break;
		close(fd);
	}
	errnum = errno;
	close(fd);
	errno = errnum;
	return -1;
}

/* S6: remove the guard, then close it, which releases its flock. */
static void guard_leave(const struct lock *lock, int guard, const char *name)
{
	if (guard < 0)
		return;
	call_unlink(lock->files.directory, name, 0);
	close(guard);
}

/* ---- taking the lock ---- */

static enum verdict symlink_judge(struct lock *lock, struct link_seen *existing)
{
	record_read(&existing->record, existing->target, existing->length);
	if (lockdir_status(lock, lock->files.directory, lock->id.entry, &existing->status) != 0)
		return ALIVE; /* gone, or changed: look again */
	return takeover_judge(lock, &existing->record, &existing->status, 0);
}

/* S4: judge again while we hold the guard.  The same record means the same holder, and a dead
 * holder stays dead.  But with --stale, the holder may have given a sign of life before we took the
 * guard. */
static bool symlink_still_allowed(struct lock *lock, struct link_seen *existing)
{
	return symlink_is_unchanged(lock, existing) &&
	       (lock->spec->stale == 0 ||
		   takeover_allowed(lock, symlink_judge(lock, existing), &existing->status));
}

/* S3 to S6: take the guard, judge again, remove the link, leave the guard.  The order matters: the
 * holder was found dead BEFORE the record is compared under the guard.
 *
 * If another process holds the guard, wait for the lock, not for the guard: that process may be
 * stopped, and the holder may release the lock meanwhile. */
static enum outcome symlink_take_over(struct lock *lock, struct link_seen *existing, enum wait wait,
    struct error *error)
{
	char name[NAME_SIZE];
	int result = 0, guard = guard_take(lock, name, call_try_flock);

	if (guard < 0 && errno == EWOULDBLOCK)
		return takeover_wait(lock, -1, wait, 0);
	if (guard < 0 && errno == ENOENT)
		return AGAIN;
	CRASH_POINT("symlink.guarded");
	if (guard >= 0 && symlink_still_allowed(lock, existing))
		/* S5: remove the link */
		result = call_unlink(lock->files.directory, lock->id.entry, 0);
	CRASH_POINT("symlink.removed");
	if (guard >= 0 && result == 0) {
		guard_leave(lock, guard, name);
		return AGAIN;
	}
	error_set(error, ERROR_CREATE, "it may be taken over, but cannot be removed");
	guard_leave(lock, guard, name);
	return takeover_wait(lock, -1, wait, 0);
}

static int symlink_cannot_read(const struct lock *lock, struct error *error)
{
	if (errno == EINVAL)
		return lockdir_not_a_lock(lock, error);
	return error_set(error, ERROR_OPEN, "cannot examine the lock");
}

/* The verdict on EXISTING's record is ALIVE.  Wait until the command has ended, and then until its
 * semlock has removed the link.  The semlock usually does so within a moment, but may itself live
 * longer.  So look for the link at short intervals before waiting for the semlock's end. */
static enum outcome symlink_await_holder(struct lock *lock, const struct link_seen *existing)
{
	const struct record *record = &existing->record;
	enum outcome outcome = foreign_holder_await(lock, record->pid, record->kind == RECORD_FULL);
	int64_t pause = MILLISECOND / 10;

	if (outcome != AGAIN || record->semlock <= 0 || process_lives(record->pid))
		return outcome;
	for (; pause < SECOND / 10; pause *= 2) {
		if (!symlink_is_unchanged(lock, existing) || !process_lives(record->semlock))
			return AGAIN;
		if (lockdir_nap(pause) != 0)
			return BUSY;
	}
	return foreign_holder_await(lock, record->semlock, false);
}

/* S2: read and judge the link that has the name; wait while its holder lives. */
static enum outcome symlink_attempt(struct lock *lock, enum wait wait, struct error *error)
{
	struct link_seen existing;
	enum verdict verdict;

	if (!read_target(lock, &existing))
		return errno == ENOENT ? AGAIN : symlink_cannot_read(lock, error);
	verdict = symlink_judge(lock, &existing);
	if (takeover_allowed(lock, verdict, &existing.status))
		return symlink_take_over(lock, &existing, wait, error);
	if (wait == TRY)
		return BUSY;
	if (verdict == ALIVE)
		return symlink_await_holder(lock, &existing);
	return foreign_holder_await(lock, 0, false);
}

/* S1: make the link.  On NFS, the server's reply can get lost: the kernel asks again, and the
 * server answers EEXIST, for our own link. */
static enum outcome symlink_publish(struct lock *lock, struct error *error)
{
	char target[RECORD_LONGEST];
	int made;

	record_write_line(&lock->files.state->record, target);
	UNINTERRUPTED(made, FAULT_POINT("symlink.symlink")
				? -1
				: symlinkat(target, lock->files.directory, lock->id.entry));
	if (made != 0 && errno != EEXIST)
		return lockdir_not_named(error);
	return made == 0 || symlink_is_ours(lock) ? TAKEN : AGAIN;
}

static enum outcome symlink_idle(struct lock *lock, struct error *error)
{
	struct link_seen existing;

	(void)error;
	if (!read_target(lock, &existing))
		return errno == ENOENT ? TAKEN : BUSY;
	return takeover_allowed(lock, symlink_judge(lock, &existing), &existing.status) ? TAKEN
	                                                                                : BUSY;
}

/* With --stale: if another process keeps the guard for a second, it has found our link too old, and
 * was stopped before it removed the link.  When it continues, it removes whatever link has the
 * name: so leave ours there.  Once we have ended, ours is a dead holder's, and waiters take
 * over. */
static int symlink_remove(struct lock *lock, int fd)
{
	char name[NAME_SIZE];
	int guard = lock->spec->stale > 0 ? guard_take(lock, name, publish_flock) : -1, result = -1,
	    errnum;

	(void)fd;
	if (lock->spec->stale > 0 && guard < 0 && errno == EWOULDBLOCK)
		return -1;
	/* If no guard can be made (a full disk), the lock is released without one. */
	CRASH_POINT("symlink.release");
	if (symlink_is_ours(lock))
		result = call_unlink(lock->files.directory, lock->id.entry, 0);
	errnum = errno;
	CRASH_POINT("symlink.released");
	guard_leave(lock, guard, name);
	errno = errnum;
	return result;
}

/* If another process holds the guard, leave out this sign of life: the next one comes soon
 * enough. */
static void symlink_beat(struct lock *lock)
{
	char name[NAME_SIZE];
	int guard =
	    lock->files.state->life == OBJECT_HELD ? guard_take(lock, name, call_try_flock) : -1;

	if (guard >= 0 && symlink_is_ours(lock))
		utimensat(lock->files.directory, lock->id.entry, NULL, AT_SYMLINK_NOFOLLOW);
	guard_leave(lock, guard, name);
}

static int symlink_inspect(const struct lock *lock, struct lock_info *info, struct error *error)
{
	struct link_seen existing;

	if (!read_target(lock, &existing) ||
	    fstatat(lock->files.directory, lock->id.entry, &info->status, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : symlink_cannot_read(lock, error);
	info->there = info->legible = true;
	record_read(&info->record, existing.target, existing.length);
	return 0;
}

static const struct object symlink_object = {
    .what = "a symbolic link to its record",
    .type = S_IFLNK,
    .publish = symlink_publish,
    .attempt = symlink_attempt,
    .is_ours = symlink_is_ours,
    .remove = symlink_remove,
    .beat = symlink_beat,
};

const struct method method_symlink = {
    .name = "symlink",
    FILE_METHOD_COMMON,
    .object = &symlink_object,
    .open = lockdir_open,
    .prepare = publish_prepare,
    .take = publish_take,
    .idle = symlink_idle,
    .inspect = symlink_inspect,
};
