/* A symbolic link whose target is the record.  It cannot be flocked: the holder is dead when both the
 * command and the semlock that releases the lock are.  Processes that take over from a dead holder
 * exclude each other by a file beside it, the guard, which is flocked and then removed.  The S steps
 * are those of the model tests/models/semlock_symlink.pml.
 *
 * A release takes no guard: while we live no process can find us dead, and a process that was stopped
 * with the guard cannot delay us (STOP in that model).  Only a waiter with --stale could remove our
 * lock by its age: with --stale, signs of life and the release take the guard, too, but wait for it for
 * a second at most (tests/models/existlock.pml, RELGUARD and HBGUARD). */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/crash_points.h"
#include "sys/process.h"
#include "sys/retry.h"
#include "methods/file/filemethods.h"
#include "methods/file/guard_file.h"

static void symlink_let_go(struct lock *lock);

static const struct object symlink_object = {
    .what = "a symbolic link to its record",
    .type = S_IFLNK,
    .let_go = symlink_let_go,
};

static int symlink_open(struct lock *lock, struct error *error)
{
	return lockdir_open(lock, &symlink_object, error);
}

/* Returns the length of the link's target, or -1 with errno set. */
static ssize_t read_target(const struct file_lock *file, char target[RECORD_LIMIT + 1])
{
	return readlinkat(file->directory, file->base, target, RECORD_LIMIT + 1);
}

static bool target_is(const struct file_lock *file, const char *target, size_t length)
{
	char now[RECORD_LIMIT + 1];

	return read_target(file, now) == (ssize_t)length && memcmp(now, target, length) == 0;
}

static bool is_ours(const struct file_lock *file)
{
	char target[RECORD_LONGEST];

	return target_is(file, target, record_write_line(&file->record, target));
}

/* S3.  A process needs the guard for a moment only, unless it has been stopped; meanwhile the holder may
 * release the lock.  Like guard_take(), but errno can be EINTR: a signal came; ENOENT: the lock is gone. */
static int symlink_await_guard(const struct file_lock *file, const char *target, size_t length,
    char name[NAME_SIZE])
{
	int64_t pause = MILLISECOND / 10;
	int guard;

	while ((guard = guard_take(file, name)) < 0 && errno == EWOULDBLOCK) {
		if (!target_is(file, target, length)) {
			errno = ENOENT;
			break;
		}
		if (lockdir_nap(pause) != 0)
			break;
		if (pause < SECOND / 10)
			pause *= 2;
	}
	return guard;
}

static enum verdict symlink_judge(struct lock *lock, const char *target, size_t length,
    struct record *record, struct stat *status)
{
	record_read(record, target, length);
	if (lockdir_status(lock, lock->file->directory, lock->file->base, status) != 0)
		return ALIVE; /* gone, or changed: look again */
	return takeover_judge(lock, record, status, 0);
}

/* S4.  The same record means the same holder, and a dead one stays dead; but with --stale the holder
 * may have given a sign of life before we had the guard. */
static bool still_allowed(struct lock *lock, const char *target, size_t length)
{
	struct record record;
	struct stat status;

	if (!target_is(lock->file, target, length))
		return false;
	return lock->stale == 0 ||
	       takeover_allowed(lock, symlink_judge(lock, target, length, &record, &status), &status);
}

/* S3 to S6.  The holder has been found dead BEFORE the record is compared under the guard. */
static enum outcome symlink_take_over(struct lock *lock, const char *target, size_t length,
    enum wait wait, struct error *error)
{
	const struct file_lock *file = lock->file;
	char name[NAME_SIZE];
	int result = 0;
	int guard = wait == TRY ? guard_take(file, name) : symlink_await_guard(file, target, length, name);

	if (guard < 0 && (errno == EWOULDBLOCK || errno == EINTR))
		return BUSY;
	if (guard < 0 && errno == ENOENT)
		return AGAIN;
	CRASH_POINT("symlink.guarded");
	if (guard >= 0 && still_allowed(lock, target, length))
		result = call_unlink(file->directory, file->base, 0); /* S5 */
	CRASH_POINT("symlink.removed");
	if (guard >= 0 && result == 0) {
		guard_leave(file, guard, name);
		return AGAIN;
	}
	error_set(error, ERROR_CREATE, "its holder is dead, but the lock cannot be taken away");
	guard_leave(file, guard, name);
	return wait == TRY ? BUSY : foreign_holder_await(lock->file, 0, false);
}

static enum outcome symlink_cannot_read(const struct lock *lock, struct error *error)
{
	if (errno == ENOENT)
		return AGAIN;
	if (errno == EINVAL)
		lockdir_not_a_lock(lock, error);
	else
		error_set(error, ERROR_OPEN, "cannot look at the lock");
	return FAILED;
}

/* RECORD's command lives.  Wait until it has ended; then, usually for a moment, until its semlock has
 * removed the lock.  That semlock's end comes too late for a wake-up: poll first. */
static enum outcome await_holder(struct lock *lock, const struct record *record,
    const char *target, size_t length)
{
	enum outcome outcome;
	int64_t pause = MILLISECOND / 10;

	outcome = foreign_holder_await(lock->file, record->pid, record->kind == RECORD_FULL);
	if (outcome != AGAIN || record->semlock <= 0 || process_lives(record->pid))
		return outcome;
	for (; pause < SECOND / 10; pause *= 2) {
		if (!target_is(lock->file, target, length) || !process_lives(record->semlock))
			return AGAIN;
		if (lockdir_nap(pause) != 0)
			return BUSY;
	}
	return foreign_holder_await(lock->file, record->semlock, false);
}

/* S2. */
static enum outcome symlink_attempt(struct lock *lock, enum wait wait, struct error *error)
{
	char target[RECORD_LIMIT + 1];
	ssize_t length = read_target(lock->file, target);
	struct record record;
	struct stat status;
	enum verdict verdict;

	if (length < 0)
		return symlink_cannot_read(lock, error);
	verdict = symlink_judge(lock, target, (size_t)length, &record, &status);
	if (takeover_allowed(lock, verdict, &status))
		return symlink_take_over(lock, target, (size_t)length, wait, error);
	if (wait == TRY)
		return BUSY;
	if (verdict == ALIVE && takeover_is_ancestor(&record, &status, error))
		return FAILED;
	if (verdict == ALIVE)
		return await_holder(lock, &record, target, (size_t)length);
	return foreign_holder_await(lock->file, 0, false);
}

/* S1.  NFS: the reply can get lost, and a second attempt then fails with EEXIST for our own link. */
static enum outcome symlink_publish(struct lock *lock, struct error *error)
{
	struct file_lock *file = lock->file;
	char target[RECORD_LONGEST];
	int made;

	record_write_line(&file->record, target);
	UNINTERRUPTED(made, FAULT_POINT("symlink.symlink") ? -1 : symlinkat(target, file->directory, file->base));
	if (made != 0) {
		if (errno != EEXIST) {
			lockdir_cannot_create(error, "cannot create");
			return FAILED;
		}
		if (!is_ours(file))
			return AGAIN;
	}
	file->held = true;
	CRASH_POINT("symlink.published");
	return TAKEN;
}

static enum outcome symlink_take(struct lock *lock, enum wait wait, struct error *error)
{
	enum outcome outcome = wait == TRY ? symlink_attempt(lock, TRY, error) : AGAIN;

	while (outcome == AGAIN) {
		if (publish_describe(lock, error) != 0)
			return FAILED;
		outcome = symlink_publish(lock, error);
		if (outcome == AGAIN)
			outcome = symlink_attempt(lock, wait, error);
	}
	return outcome;
}

static bool symlink_idle(struct lock *lock)
{
	char target[RECORD_LIMIT + 1];
	ssize_t length = read_target(lock->file, target);
	struct record record;
	struct stat status;

	if (length < 0)
		return errno == ENOENT;
	return takeover_allowed(lock, symlink_judge(lock, target, (size_t)length, &record, &status), &status);
}

/* A process that keeps the guard from us was stopped between finding our lock old and removing it: when
 * it goes on it removes whatever is there.  So our lock stays; once we have ended it is a dead
 * holder's, for the next one to take over. */
static void symlink_let_go(struct lock *lock)
{
	struct file_lock *file = lock->file;
	char name[NAME_SIZE];
	int guard = lock->stale > 0 ? guard_await(file, SECOND, name) : -1;

	/* If no guard can be made (a full disk), the lock is released without one. */
	lock->stuck = lock->stale > 0 && guard < 0 && errno == EWOULDBLOCK;
	CRASH_POINT("symlink.release");
	if (!lock->stuck &&
	    (!is_ours(file) || (call_unlink(file->directory, file->base, 0) != 0 && errno == ENOENT)))
		lock->lost = true;
	file->held = false;
	CRASH_POINT("symlink.released");
	guard_leave(file, guard, name);
}

static bool symlink_owned(struct lock *lock)
{
	return !lock->file->held || is_ours(lock->file);
}

/* Without the guard there is no sign of life this time: the next one comes soon enough. */
static void symlink_beat(struct lock *lock)
{
	const struct file_lock *file = lock->file;
	char name[NAME_SIZE];
	int guard = file->held ? guard_take(file, name) : -1;

	if (guard >= 0 && is_ours(file))
		utimensat(file->directory, file->base, NULL, AT_SYMLINK_NOFOLLOW);
	guard_leave(file, guard, name);
}

const struct method method_symlink = {
    .name = "symlink",
    .file = &(const struct file_method){
	.open = symlink_open,
	.take = symlink_take,
	FILE_METHOD_COMMON,
	.idle = symlink_idle,
	.inspect = inspect_symlink,
	.owned = symlink_owned,
	.beat = symlink_beat,
    },
};
