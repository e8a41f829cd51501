/* A symbolic link whose target is the record.  It cannot be flocked: its holder's life is
 * that of a process, and those who take over from the dead keep each other out with a
 * file beside it, the guard, that is flocked and removed again.  A holder that lets go
 * takes the guard as well: or a breaker that goes by age could find it, and remove, a
 * moment later, the next one's (tests/models/existlock.pml, RELGUARD, HBGUARD). */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "crash.h"
#include "methods/existing.h"
#include "methods/filemethods.h"
#include "methods/namefile.h"
#include "methods/sight.h"
#include "methods/stranger.h"

static void let_go(struct lock *lock);

static const struct object object = {
    .what = "a symbolic link to its record",
    .type = S_IFLNK,
    .let_go = let_go,
};

static int open_symlink(struct lock *lock, struct why *why)
{
	return namefile_open(lock, &object, why);
}

static int open_guard(const struct namefile *file, const char *name)
{
	int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
	int fd;

	flags |= file->local ? O_RDONLY : O_RDWR; /* over NFS, who locks has to be able to write */

	do { /* without O_CREAT first: see fs.protected_regular */
		fd = openat(file->directory, name, flags);
		if (fd < 0 && errno == ENOENT)
			fd = openat(file->directory, name, flags | O_CREAT | O_EXCL,
			    file->local ? 0444 : 0666);
	} while (fd < 0 && (errno == EEXIST || errno == EINTR));
	return fd;
}

/* S3.  Returns the guard, or -1 with errno set: EWOULDBLOCK with TRY, or EINTR. */
static int take_guard(const struct namefile *file, enum wait wait, char name[NAME_SIZE])
{
	int fd;

	snprintf(name, NAME_SIZE, ".%.200s.guard", file->base);
	for (;;) {
		fd = open_guard(file, name);
		if (fd < 0)
			return -1;
		if (flock(fd, wait == TRY ? LOCK_EX | LOCK_NB : LOCK_EX) != 0) {
			int errnum = errno;

			close(fd);
			errno = errnum;
			return -1;
		}
		if (namefile_same(file, name, fd))
			return fd;
		close(fd);
	}
}

/* S6. */
static void leave_guard(const struct namefile *file, int guard, const char *name)
{
	if (guard < 0)
		return;
	unlinkat(file->directory, name, 0);
	close(guard);
}

/* What the link says now; returns its length, or -1 with errno set. */
static ssize_t read_target(const struct namefile *file, char target[RECORD_LIMIT + 1])
{
	return readlinkat(file->directory, file->base, target, RECORD_LIMIT + 1);
}

static bool says(const struct namefile *file, const char *target, size_t length)
{
	char now[RECORD_LIMIT + 1];

	return read_target(file, now) == (ssize_t)length && memcmp(now, target, length) == 0;
}

static bool is_ours(const struct namefile *file)
{
	char target[RECORD_LONGEST];

	return says(file, target, record_write_line(&file->record, target));
}

/* Its semlock, told of the command's end as we were, is most likely about to take it away
 * itself: to let it is quicker than to make a guard, and keep it from it. */
static bool goes_by_itself(const struct namefile *file, const char *target, size_t length)
{
	static const struct timespec a_moment = {0, MILLISECOND / 10};

	for (int looks = 0; looks < 5; looks++) {
		if (!says(file, target, length))
			return true;
		nanosleep(&a_moment, NULL);
	}
	return false;
}

/* S3 to S6.  That it has been found dead BEFORE it is compared under the guard is what
 * counts: the same record is the same holder's. */
static enum outcome take_over(struct lock *lock, const char *target, size_t length, enum wait wait,
    struct why *why)
{
	const struct namefile *file = lock->file;
	char name[NAME_SIZE];
	int guard, result = 0;

	if (wait == SLEEP && goes_by_itself(file, target, length))
		return AGAIN;
	guard = take_guard(file, wait, name);
	if (guard < 0 && (errno == EWOULDBLOCK || errno == EINTR))
		return BUSY;
	CRASH_POINT("symlink.guarded");
	if (guard >= 0 && says(file, target, length)) /* S4 */
		result = unlinkat(file->directory, file->base, 0); /* S5 */
	CRASH_POINT("symlink.removed");
	if (guard >= 0 && result == 0) {
		leave_guard(file, guard, name);
		return AGAIN;
	}
	why_set(why, TROUBLE_CREATE, "its holder is dead, but the lock cannot be taken away");
	leave_guard(file, guard, name);
	return wait == TRY ? BUSY : stranger_await(lock->file, 0, false);
}

static enum outcome cannot_read(const struct lock *lock, struct why *why)
{
	if (errno == ENOENT)
		return AGAIN;
	if (errno == EINVAL)
		why_say(why, TROUBLE_OPEN, "is no lock of method %s, which is %s: left alone",
		    lock->method->name, object.what);
	else
		why_set(why, TROUBLE_OPEN, "cannot look at the lock");
	return FAILED;
}

static enum verdict judge(struct lock *lock, const char *target, ssize_t length,
    struct record *record, struct stat *status)
{
	record_read(record, target, (size_t)length);
	if (fstatat(lock->file->directory, lock->file->base, status, AT_SYMLINK_NOFOLLOW) != 0)
		return ALIVE; /* gone, or changed: look again */
	return existing_judge(lock, record, status, false);
}

/* S2. */
static enum outcome inspect(struct lock *lock, enum wait wait, struct why *why)
{
	char target[RECORD_LIMIT + 1];
	ssize_t length = read_target(lock->file, target);
	struct record record;
	struct stat status;
	enum verdict verdict;

	if (length < 0)
		return cannot_read(lock, why);
	verdict = judge(lock, target, length, &record, &status);
	if (existing_yields(lock, verdict, &status))
		return take_over(lock, target, (size_t)length, wait, why);
	if (wait == TRY)
		return BUSY;
	if (verdict == ALIVE && existing_is_above(&record, why))
		return FAILED;
	return stranger_await(lock->file, verdict == ALIVE ? record.pid : 0,
	    record.kind == RECORD_FULL);
}

/* S1.  Over NFS the answer to one that was made can get lost. */
static enum outcome publish(struct lock *lock, struct why *why)
{
	struct namefile *file = lock->file;
	char target[RECORD_LONGEST];

	record_write_line(&file->record, target);
	if (symlinkat(target, file->directory, file->base) != 0) {
		if (errno != EEXIST) {
			namefile_cannot_create(why, "cannot create");
			return FAILED;
		}
		if (!is_ours(file))
			return AGAIN;
	}
	file->held = true;
	CRASH_POINT("symlink.published");
	return TAKEN;
}

static enum outcome take(struct lock *lock, enum wait wait, struct why *why)
{
	enum outcome outcome = wait == TRY ? inspect(lock, TRY, why) : AGAIN;

	while (outcome == AGAIN) {
		if (!lock->file->ready && namefile_describe(lock, why) != 0)
			return FAILED;
		lock->file->ready = true;
		outcome = publish(lock, why);
		if (outcome == AGAIN)
			outcome = inspect(lock, wait, why);
	}
	return outcome;
}

static bool idle(struct lock *lock)
{
	char target[RECORD_LIMIT + 1];
	ssize_t length = read_target(lock->file, target);
	struct record record;
	struct stat status;

	if (length < 0)
		return errno == ENOENT;
	return existing_yields(lock, judge(lock, target, length, &record, &status), &status);
}

/* Without the guard, if there can be none (a full disk): better than never to let go. */
static int take_guard_to_release(const struct namefile *file, char name[NAME_SIZE])
{
	int guard;

	do {
		guard = take_guard(file, SLEEP, name);
	} while (guard < 0 && errno == EINTR);
	return guard;
}

static void let_go(struct lock *lock)
{
	struct namefile *file = lock->file;
	char name[NAME_SIZE];
	int guard = take_guard_to_release(file, name);

	/* If it is not: the command has ended, so the next one may well have taken it over;
	 * whether it was gone before, somebody had an eye on. */
	CRASH_POINT("symlink.release");
	if (is_ours(file))
		unlinkat(file->directory, file->base, 0);
	file->held = false;
	CRASH_POINT("symlink.released");
	leave_guard(file, guard, name);
}

static bool owned(struct lock *lock)
{
	return !lock->file->held || is_ours(lock->file);
}

static void beat(struct lock *lock)
{
	const struct namefile *file = lock->file;
	char name[NAME_SIZE];
	int guard = file->held ? take_guard_to_release(file, name) : -1;

	if (guard >= 0 && is_ours(file))
		utimensat(file->directory, file->base, NULL, AT_SYMLINK_NOFOLLOW);
	leave_guard(file, guard, name);
}

const struct method method_symlink = {
    .name = "symlink",
    .can = LEAVES_RECORD | NEEDS_AN_EYE,
    .what = "a symbolic link that points to the holder's PID",
    .open = open_symlink,
    .take = take,
    .drop = namefile_drop,
    .idle = idle,
    .peek = symlink_peek,
    .listen = stranger_listen,
    .owned = owned,
    .beat = beat,
    .release = namefile_release,
};
