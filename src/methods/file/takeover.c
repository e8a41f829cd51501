/* SPDX-License-Identifier: MIT */
/* The I steps are those of the model tests/models/semlock_file.pml, which proves their order: flock
 * the object, then judge its record, and only THEN compare name and descriptor.  In any other order
 * a lock can be removed that another process has taken in the meantime. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "sys/crash_points.h"
#include "sys/files.h"
#include "sys/process.h"
#include "sys/waiting.h"
#include "methods/file/filemethods.h"

/* An empty file that is younger than this may be about to be written.  Do not even flock it:
 * waiters that flock it in turn could keep its creator from ever doing so. */
#define GRACE (2 * SECOND)

struct object_seen {
	int fd;
	struct stat status;
	struct record record;
};

/* ---- a holder that does not use flock(2) ----
 *
 * inotify reports changes of the directory, a pidfd the holder's death.  Either can be missing (no
 * permission, no such call, a holder on another host), and neither reports that a lock has grown
 * old.  So the waiter also looks at the lock every second.  Where a change may go unreported, it
 * looks after a millisecond, and then less and less often, down to every tenth of a second.
 *
 * The kernel takes ten milliseconds to close an inotify descriptor.  So the waiter opens one only
 * for such a holder, and closes it after its own release of the lock. */

int foreign_holder_listen(struct lock *lock)
{
	char path[40];
	int fd = lock->files.state->notify;

	if (fd < 0)
		fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (fd < 0 || fd == lock->files.state->notify)
		return fd;
	snprintf(path, sizeof path, "/proc/self/fd/%d", lock->files.directory);
	if (inotify_add_watch(fd, path, IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE) < 0) {
		close(fd);
		return -1;
	}
	lock->files.state->notify = fd;
	return fd;
}

/* Read the events: may one of them be about the lock's name? */
static bool concerns_us(const struct lock *lock)
{
	_Alignas(struct inotify_event) char events[4096];
	const struct inotify_event *event;
	ssize_t got = read(lock->files.state->notify, events, sizeof events);
	size_t length = strlen(lock->id.entry);

	for (char *p = events; got > 0 && p < events + got; p += sizeof *event + event->len) {
		event = (const struct inotify_event *)(const void *)p;
		if ((event->mask & (IN_Q_OVERFLOW | IN_IGNORED)) != 0 ||
		    (event->len > 0 && strncmp(event->name, lock->id.entry, length) == 0))
			return true;
	}
	return false;
}

/* The time until the next look at the lock, in ms.  NOTIFIED: a change wakes us earlier. */
static int next_pause(struct file_lock *file, bool notified)
{
	if (notified)
		return 1000;
	if (file->pause < MILLISECOND)
		file->pause = MILLISECOND;
	else if (file->pause < SECOND / 10)
		file->pause *= 2;
	return (int)(file->pause / MILLISECOND);
}

static enum outcome sleep_until_change(struct lock *lock, int process, bool notified)
{
	struct pollfd sources[2] = {
	    {.fd = lock->files.state->notify, .events = POLLIN},
	    {.fd = process, .events = POLLIN},
	};
	int left = next_pause(lock->files.state, notified), ready;
	struct deadline look_anyway = deadline_after(left * MILLISECOND);

	do {
		ready = poll(sources, 2, left);
		if (ready < 0 && errno != EINTR) /* poll(2) has failed: sleep without it */
			ready = nap(left * MILLISECOND);
		if (ready < 0)
			return errno == EINTR ? BUSY : AGAIN;
		if (ready == 0 || sources[1].revents != 0 || concerns_us(lock))
			return AGAIN;
		left = (int)(deadline_left(&look_anyway) / MILLISECOND);
	} while (left > 0); /* only other files have changed */
	return AGAIN;
}

enum outcome foreign_holder_await(struct lock *lock, pid_t pid, bool dies_with_it)
{
	struct file_lock *file = lock->files.state;
	enum outcome outcome = AGAIN;
	int process = pid > 0 ? pidfd_of(pid) : -1;

	/* PID has just ended; or it only seemed to live, because kill(2) is forbidden.  In the
	 * second case, the caller would come back at once, again and again: sleep. */
	if (process < 0 && pid > 0 && errno == ESRCH)
		return sleep_until_change(lock, -1, false);
	dies_with_it = dies_with_it && process >= 0;
	if (!dies_with_it && file->notify < 0 && file->pause == 0) {
		foreign_holder_listen(lock);
		file->pause = 1;
	} else {
		outcome = sleep_until_change(lock, process,
		    dies_with_it || (file->notify >= 0 && file->local));
	}
	if (process >= 0)
		close(process);
	return outcome;
}

void foreign_holder_forget(struct file_lock *file)
{
	if (file->notify >= 0)
		close(file->notify);
	file->notify = -1;
	file->pause = 0;
}

/* ---- the verdict ---- */

/* The age of STATUS's mtime at the moment NOW (0: the file system's present time), in ns; -1:
 * unknown. */
static int64_t age_of(const struct lock *lock, const struct stat *status, int64_t now)
{
	if (now == 0)
		now = lockdir_now(lock);
	return now < 0 ? -1 : now - lockdir_mtime(status);
}

void takeover_note_naming(struct stat *status)
{
	const struct timespec changed = status->st_ctim;

	if ((int64_t)changed.tv_sec * SECOND + changed.tv_nsec > lockdir_mtime(status))
		status->st_mtim = changed;
}

/* takeover_note_naming(), but only for a regular file with a second name: a script may take a lock
 * with ln(1), from a file that it keeps. */
static void note_linking(struct stat *status)
{
	if (S_ISREG(status->st_mode) && status->st_nlink > 1)
		takeover_note_naming(status);
}

enum verdict takeover_judge(const struct lock *lock, const struct record *record,
    const struct stat *status, int64_t now)
{
	struct facts facts = {
	    .local = lock->files.state->local,
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

/* The last sign of life is dated in the future: a clock was wrong then, or is now, so the date says
 * nothing about its age.  Return for how long this waiter, by its own clock, has seen no other
 * sign. */
static int64_t age_in_future(struct file_lock *file, const struct stat *status)
{
	const int64_t sign = lockdir_mtime(status);

	if (file->future_since == 0 || file->future != sign) {
		file->future = sign;
		file->future_since = clock_now();
	}
	return clock_now() - file->future_since;
}

bool takeover_allowed(struct lock *lock, enum verdict verdict, const struct stat *status)
{
	int64_t age;

	if (verdict == DEAD)
		return true;
	if (verdict != UNKNOWN || lock->spec->stale == 0)
		return false;
	age = age_of(lock, status, 0);
	if (age < -GRACE)
		age = age_in_future(lock->files.state, status);
	return age > lock->spec->stale;
}

/* ---- taking over ---- */

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
		if (fstatat(lock->files.directory, lock->id.entry, &there, AT_SYMLINK_NOFOLLOW) ==
		    0)
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
	return lockdir_failed(error, ERROR_OPEN, "cannot examine the lock");
}

/* Open what has the lock's name.  On NFS, LOCK_EX needs a descriptor that is open for writing.  If
 * that is forbidden, open it for reading: the record can still be judged. */
static int open_name(const struct lock *lock)
{
	int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, fd = -1;

	if (lock->files.state->object->type == S_IFDIR)
		return openat(lock->files.directory, lock->id.entry,
		    O_RDONLY | O_DIRECTORY | flags);
	if (!lock->files.state->local)
		fd = openat(lock->files.directory, lock->id.entry, O_RDWR | flags);
	return fd >= 0 ? fd : openat(lock->files.directory, lock->id.entry, O_RDONLY | flags);
}

/* I1: open what has the lock's name.  TAKEN: it is open as EXISTING->fd. */
static enum outcome open_existing(struct lock *lock, struct object_seen *existing,
    struct error *error)
{
	existing->fd = open_name(lock);
	if (existing->fd < 0)
		return takeover_cannot_open(lock, error);
	if (fstat(existing->fd, &existing->status) != 0)
		/* FUSE and NFS: an open file can be gone */
		return takeover_cannot_open(lock, error);
	if ((existing->status.st_mode & S_IFMT) != lock->files.state->object->type)
		return lockdir_not_a_lock(lock, error);
	return TAKEN;
}

static enum verdict judge_existing(struct lock *lock, struct object_seen *existing)
{
	lock->files.state->object->read(existing->fd, &existing->record);
	if (lockdir_status(lock, existing->fd, "", &existing->status) != 0)
		return ALIVE; /* its age is not known */
	note_linking(&existing->status);
	return takeover_judge(lock, &existing->record, &existing->status, 0);
}

enum outcome takeover_wait(struct lock *lock, int fd, enum wait wait, pid_t pid)
{
	if (fd >= 0)
		flock(fd, LOCK_UN); /* or others would take us, asleep, for its holder */
	return wait == TRY ? BUSY : foreign_holder_await(lock, pid, false);
}

/* Does another process have a record lock on FD?  On an NFS server, a client's flock is such a
 * lock.  Then the recorded PID is of a process on that client, which may live although the PID is
 * dead here. */
static bool has_record_lock(int fd)
{
	struct flock bytes = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(fd, F_OFD_GETLK, &bytes) == 0 && bytes.l_type != F_UNLCK;
}

/* I3: flock the object.  A semlock that holds the lock has it flocked.  A waiter sleeps in
 * flock(2), and wakes up once: when that holder releases the lock, or dies. */
static enum outcome flock_existing(struct lock *lock, struct object_seen *existing, enum wait wait)
{
	if (call_try_flock(existing->fd) == 0)
		return lock->files.state->local && has_record_lock(existing->fd)
		           ? takeover_wait(lock, existing->fd, wait, 0)
		           : TAKEN;
	if (errno != EWOULDBLOCK || lock->files.state->by_age)
		/* flock(2) failed, and a takeover needs it; or (BY_AGE) another process is removing
		 * it */
		return takeover_wait(lock, existing->fd, wait, 0);
	if (wait == TRY || flock(existing->fd, LOCK_EX) != 0)
		return BUSY;
	return lockdir_same(lock, lock->id.entry, existing->fd) ? TAKEN : AGAIN;
}

/* I6: remove the lock's name.  In a sticky directory, we may not if the object is another
 * user's. */
static enum outcome remove_existing(struct lock *lock, const struct object_seen *existing,
    enum wait wait, struct error *error)
{
	if (lock->files.state->object->remove(lock, existing->fd) != 0 && errno != ENOENT) {
		if (existing->record.pid > 0)
			error_set(error, ERROR_CREATE,
			    "it may be taken over from process %ld, but cannot be removed",
			    (long)existing->record.pid);
		else
			error_set(error, ERROR_CREATE,
			    "it names no process, and cannot be removed");
		return takeover_wait(lock, existing->fd, wait, 0);
	}
	CRASH_POINT("takeover.removed");
	lockdir_sweep(lock);
	return AGAIN;
}

static enum outcome takeover_await_holder(struct lock *lock, const struct object_seen *existing,
    enum wait wait, enum verdict verdict)
{
	pid_t holder = wait == SLEEP && verdict == ALIVE ? record_awaited(&existing->record) : 0;

	return takeover_wait(lock, existing->fd, wait, holder);
}

static enum outcome examine_existing(struct lock *lock, struct object_seen *existing,
    enum wait wait, struct error *error)
{
	enum verdict verdict = judge_existing(lock, existing); /* I2: judge its record */
	enum outcome outcome;

	if (existing->record.kind == RECORD_ABSENT)
		return error_plain(error, ERROR_OPEN,
		    "is a directory of other files, not a lock: left alone");
	if (existing->record.kind == RECORD_EMPTY && verdict == ALIVE)
		return takeover_wait(lock, existing->fd, wait, 0);
	if ((wait == TRY || lock->files.state->by_age) &&
	    !takeover_allowed(lock, verdict, &existing->status))
		return takeover_await_holder(lock, existing, wait, verdict);
	outcome = flock_existing(lock, existing, wait); /* I3: flock it */
	if (outcome != TAKEN)
		return outcome;
	CRASH_POINT("takeover.guarded");
	verdict = judge_existing(lock, existing); /* I4: judge it again */
	if (!takeover_allowed(lock, verdict, &existing->status))
		return takeover_await_holder(lock, existing, wait, verdict);
	CRASH_POINT("takeover.judged");
	/* I5: only now, after the verdict, check that the name still means EXISTING */
	if (!lockdir_same(lock, lock->id.entry, existing->fd))
		return AGAIN;
	CRASH_POINT("takeover.compared");
	return remove_existing(lock, existing, wait, error); /* I6: remove the name */
}

enum outcome takeover_attempt(struct lock *lock, enum wait wait, struct error *error)
{
	struct object_seen existing = {.fd = -1};
	enum outcome outcome = open_existing(lock, &existing, error);

	if (outcome == TAKEN)
		outcome = examine_existing(lock, &existing, wait, error);
	else if (outcome == BUSY)
		outcome = takeover_wait(lock, existing.fd, wait, 0);
	if (existing.fd >= 0)
		close(existing.fd); /* I7: release the flock */
	return outcome;
}

enum outcome takeover_idle(struct lock *lock, struct error *error)
{
	struct object_seen existing = {.fd = -1};
	enum outcome outcome = open_existing(lock, &existing, error);
	bool idle = outcome == AGAIN;

	if (outcome == TAKEN)
		idle = takeover_allowed(lock, judge_existing(lock, &existing), &existing.status) &&
		       call_try_flock(existing.fd) == 0;
	if (existing.fd >= 0)
		close(existing.fd);
	return idle ? TAKEN : BUSY;
}

/* ---- only looking at it ---- */

/* INFO->object is an O_PATH descriptor, which cannot be read from: open the object by NAME once
 * more.  Returns false if NAME means another object by now. */
static bool inspect_record(const struct lock *lock, const char *name, struct lock_info *info)
{
	int kind = lock->files.state->object->type == S_IFDIR ? O_DIRECTORY : O_NONBLOCK;
	int fd = openat(lock->files.directory, name,
	    O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | kind);
	struct stat status;

	if (fd < 0)
		return errno == EACCES || errno == EPERM;
	info->legible = true;
	lock->files.state->object->read(fd, &info->record);
	if (fstat(fd, &status) != 0)
		status = (struct stat){0};
	close(fd);
	return same_file(identity_of(&status), identity_of(&info->status));
}

int inspect_name(const struct lock *lock, const char *name, struct lock_info *info,
    struct error *error)
{
	for (int tries = 0; tries < 100; tries++) {
		lock_info_forget(info);
		info->object = openat(lock->files.directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (info->object < 0 && errno == ENOENT)
			return 0;
		if (info->object < 0 || fstat(info->object, &info->status) != 0) {
			if (errno == ENOENT || errno == ESTALE)
				continue; /* FUSE and NFS: an open file can be gone */
			return error_set(error, ERROR_OPEN, "cannot examine it");
		}
		if ((info->status.st_mode & S_IFMT) != lock->files.state->object->type)
			return lockdir_not_a_lock(lock, error);
		info->there = true;
		note_linking(&info->status);
		if (inspect_record(lock, name, info))
			return 0;
	}
	return error_plain(error, ERROR_OPEN, "cannot examine it: it keeps changing");
}

int inspect_object(const struct lock *lock, struct lock_info *info, struct error *error)
{
	return inspect_name(lock, lock->id.entry, info, error);
}

void lock_info_forget(struct lock_info *info)
{
	if (info->object >= 0)
		close(info->object);
	*info = (struct lock_info){.object = -1};
}
