/* The method rename where flock(2) does not work, or excludes only some of the processes that see the
 * file (NFS, FUSE).  The token's name while the lock is held is used once and never again,
 *
 *     LOCK.held.PID.START.BOOT.PIDNS.BEATS.RANDOM.HOST
 *
 * so that rename(2) is a compare-and-swap: a takeover, a sign of life or a release renames exactly the
 * token that was looked at, or fails with ENOENT because another process was faster.  The U
 * steps are those of the models tests/models/semlock_rename.pml (V=2) and, with --init, semlock_init.pml.
 *
 * LOCK.held alone is a script's, or a semlock's on the host that has the files: that name is used again
 * and again, so a token under it is never taken over here. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/crash_points.h"
#include "sys/retry.h"
#include "methods/file/filemethods.h"
#include "methods/file/plainfile.h"
#include "methods/file/rename_token.h"

#define LOOKS 100 /* so many in a row have to find no token before there is none */

static void unique_let_go(struct lock *lock);

static const struct object unique_object = {
    .what = "a token made by --init",
    .type = S_IFREG,
    .read = plainfile_read, /* for inspect_rename(), of a LOCK.held */
    .let_go = unique_let_go,
};

static int unique_open(struct lock *lock, struct error *error)
{
	return lockdir_open(lock, &unique_object, error);
}

/* ---- taking it ---- */

static enum outcome unique_cannot(const char *what, struct error *error)
{
	lockdir_cannot_create(error, what);
	return FAILED;
}

/* U6.  Is the token that we have now the only one?  An administrator, or another --init that looked for
 * it during a rename, may have made a second one.  Of two holders the later one sees the other's name,
 * which is there before it looks, and gives its token back.  Two tokens at home become one. */
static enum outcome unique_settle(struct lock *lock, bool made, struct error *error)
{
	struct file_lock *file = lock->file;
	char other[NAME_SIZE];
	struct stat status;
	int others = rename_token_is_there(file, file->base, &status)
			 ? 1 : rename_token_find_away(file, file->away, other);

	if (others == 0)
		return TAKEN;
	if (made)
		call_unlink(file->directory, file->away, 0);
	else
		call_rename(file->directory, file->away, file->base);
	file->held = false;
	if (others < 0)
		return unique_cannot("cannot read its directory", error);
	lockdir_nap((lockdir_random() % 8 + 1) * MILLISECOND);
	return AGAIN;
}

/* U1: the token's name FROM becomes ours.  NFS: the reply can get lost, and a second attempt then fails
 * with ENOENT. */
static enum outcome unique_away(struct lock *lock, const char *from, struct error *error)
{
	struct file_lock *file = lock->file;
	struct stat status;
	int moved;

	if (rename_token_name(file, 1, file->away, error) != 0)
		return FAILED;
	UNINTERRUPTED(moved, FAULT_POINT("unique.rename") ? -1 : call_rename(file->directory, from, file->away));
	if (moved != 0) {
		if (errno != ENOENT)
			return unique_cannot("cannot rename the token", error);
		if (!rename_token_is_there(file, file->away, &status))
			return AGAIN;
	}
	file->held = true;
	CRASH_POINT("unique.moved");
	return unique_settle(lock, false, error);
}

/* U5, --init: the token is made under a name that is ours already, because other processes would take
 * it at home before U6. */
static enum outcome unique_make(struct lock *lock, struct error *error)
{
	struct file_lock *file = lock->file;
	int fd;

	if (rename_token_name(file, 0, file->away, error) != 0)
		return FAILED;
	fd = call_open(file->directory, file->away,
	    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, lock->create_mode);
	if (fd < 0)
		return unique_cannot("cannot make the token", error);
	if (lock->exact_mode)
		fchmod(fd, lock->create_mode);
	close(fd);
	file->held = true;
	CRASH_POINT("unique.made");
	return unique_settle(lock, true, error);
}

static enum outcome unique_not_a_token(const char *name, struct error *error)
{
	error_say(error, ERROR_OPEN, "is no lock of method rename, which is %s: %s left alone",
	    unique_object.what, name);
	return FAILED;
}

/* The token is at home.  Its mtime is set first: waiters judge by it as soon as the token is away. */
static enum outcome unique_take_free(struct lock *lock, struct error *error)
{
	const struct file_lock *file = lock->file;
	struct stat status;

	if (publish_describe(lock, error) != 0)
		return FAILED;
	if (!rename_token_is_there(file, file->base, &status))
		return AGAIN;
	if (!S_ISREG(status.st_mode))
		return unique_not_a_token(file->base, error);
	utimensat(file->directory, file->base, NULL, AT_SYMLINK_NOFOLLOW);
	return unique_away(lock, file->base, error);
}

static bool unique_allowed(struct lock *lock, const char *name, struct stat *status, struct record *record,
    enum verdict *verdict)
{
	rename_token_read_name(lock->file, name, record);
	takeover_note_naming(status); /* a rename is a sign of life */
	*verdict = takeover_judge(lock, record, status, 0);
	return name[strlen(lock->file->base) + 5] == '.' && takeover_allowed(lock, *verdict, status);
}

/* U2: the token is away, under NAME. */
static enum outcome unique_inspect(struct lock *lock, const char *name, enum wait wait, struct error *error)
{
	struct file_lock *file = lock->file;
	struct stat status;
	struct record record;
	enum verdict verdict;
	struct stat directory; /* its writers can rename the token, and the name is the record */

	if (!rename_token_is_there(file, name, &status))
		return AGAIN;
	if (!S_ISREG(status.st_mode))
		return unique_not_a_token(name, error);
	if (unique_allowed(lock, name, &status, &record, &verdict)) {
		CRASH_POINT("unique.judged");
		return file->ready ? unique_away(lock, name, error) : AGAIN;
	}
	if (wait == TRY)
		return BUSY;
	if (verdict == ALIVE && fstat(file->directory, &directory) == 0 &&
	    takeover_is_ancestor(&record, &directory, error))
		return FAILED;
	return foreign_holder_await(file, verdict == ALIVE ? record.pid : 0, verdict == ALIVE);
}

static enum outcome unique_no_token(struct lock *lock, struct error *error)
{
	if (lock->init)
		return lock->file->ready ? unique_make(lock, error) : AGAIN;
	error_say(error, ERROR_OPEN,
	    "there is no token, neither under this name nor with .held behind it: "
	    "--init makes it, once");
	return FAILED;
}

/* During a rename no name may show.  A token at home beside one that is away is left alone: to take it
 * and put it back would wake all waiters, and ourselves. */
static enum outcome unique_attempt(struct lock *lock, enum wait wait, struct error *error)
{
	char name[NAME_SIZE];
	struct stat status;
	int found;

	for (int looks = 0; looks < LOOKS; looks++) {
		found = rename_token_find_away(lock->file, "", name);
		if (found < 0)
			return unique_cannot("cannot read its directory", error);
		if (found > 0)
			return unique_inspect(lock, name, wait, error);
		if (rename_token_is_there(lock->file, lock->file->base, &status))
			return unique_take_free(lock, error);
	}
	return unique_no_token(lock, error);
}

static enum outcome unique_take(struct lock *lock, enum wait wait, struct error *error)
{
	enum outcome outcome = wait == TRY ? unique_attempt(lock, TRY, error) : AGAIN;

	while (outcome == AGAIN) {
		if (publish_describe(lock, error) != 0)
			return FAILED;
		outcome = unique_attempt(lock, wait, error);
	}
	return outcome;
}

static bool unique_idle(struct lock *lock)
{
	char name[NAME_SIZE];
	struct stat status;
	struct record record;
	enum verdict verdict;

	if (rename_token_find_away(lock->file, "", name) <= 0)
		return rename_token_is_there(lock->file, lock->file->base, &status);
	return rename_token_is_there(lock->file, name, &status) &&
	       unique_allowed(lock, name, &status, &record, &verdict);
}

/* ---- having it ---- */

static bool unique_owned(struct lock *lock)
{
	struct stat status;

	return !lock->file->held || rename_token_is_there(lock->file, lock->file->away, &status);
}

/* U3. */
static void unique_beat(struct lock *lock)
{
	struct file_lock *file = lock->file;
	char next[NAME_SIZE];
	struct stat status;
	struct error ignored;

	if (!file->held || rename_token_name(file, ++file->beats + 1, next, &ignored) != 0)
		return;
	utimensat(file->directory, file->away, NULL, AT_SYMLINK_NOFOLLOW);
	if (call_rename(file->directory, file->away, next) == 0 || rename_token_is_there(file, next, &status))
		memcpy(file->away, next, sizeof next);
}

/* U4.  A missing token is no loss here: the command has ended, and the next holder may have taken over
 * from it.  The monitor has noticed an earlier loss. */
static void unique_let_go(struct lock *lock)
{
	struct file_lock *file = lock->file;

	CRASH_POINT("unique.release");
	call_rename(file->directory, file->away, file->base);
	file->held = false;
	CRASH_POINT("unique.back");
}

static const struct method method_rename_unique = {
    .name = "rename",
    .can = NEEDS_INIT | NEEDS_MONITOR,
    .file = &(const struct file_method){
	.open = unique_open,
	.take = unique_take,
	FILE_METHOD_COMMON,
	.idle = unique_idle,
	.inspect = inspect_rename,
	.owned = unique_owned,
	.beat = unique_beat,
    },
};

void rename_unique_instead(struct lock *lock)
{
	lock->method = &method_rename_unique;
	lock->file->object = &unique_object;
}
