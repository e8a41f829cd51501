/* SPDX-License-Identifier: MIT */
/* Temporary names are .LOCK.semlock.PID.WHERE.TIME; if the object is being removed, "gone."
 * precedes PID.  WHERE is a hash of host, boot and PID namespace: only where these are the same,
 * PID means something.  Only a semlock that was killed leaves such a name behind. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "report/text.h"
#include "sys/crash_points.h"
#include "sys/file_system.h"
#include "sys/files.h"
#include "sys/waiting.h"
#include "methods/file/filemethods.h"

/* The ages, on a local file system and on others, at which an object is removed whose temporary
 * name is of another host, boot or PID namespace: the PID in that name means nothing here. */
#define SWEEP_AGE_LOCAL (60 * SECOND)
#define SWEEP_AGE_SHARED (86400 * SECOND)

/* ---- the directory ---- */

/* Note in LOCK what its file system can do.  If other machines may use the file system, refuse
 * --stale unless they see the flock that guards a takeover.  They never see that of a directory; on
 * some mounts, they do not see that of a file either. */
static int note_file_system(struct lock *lock, struct error *error)
{
	struct file_lock *file = lock->files.state;
	enum file_system kind = file_system_of(lock->files.directory);
	struct procfs_mount mount;
	bool known;

	file->local = kind == FS_LOCAL;
	if (!file->local && lock_can(lock, NEEDS_INIT))
		return error_plain(error, ERROR_UNAVAILABLE,
		    "rename: on a file system that other machines may use, flock(2) may not guard "
		    "the lock file: "
		    "use -m link or excl");
	if (lock->spec->stale == 0 || file->local)
		return 0;
	if (file->object->type == S_IFDIR)
		return error_plain(error, ERROR_UNAVAILABLE,
		    "--stale: on a file system that other machines may use, a directory cannot be "
		    "taken over safely: use -m excl or link");
	known = file_system_mount(lock->files.directory, &mount);
	if (known && file_system_hides_locks(&mount, true))
		return error_plain(error, ERROR_UNAVAILABLE,
		    "--stale: the way %s is mounted hides from other machines the flock that "
		    "guards a takeover",
		    mount.point);
	file->by_age = kind == FS_NFS && !(known && strcmp(mount.type, "nfs4") == 0);
	return 0;
}

int lockdir_open(struct lock *lock, struct error *error)
{
	const char *slash = strrchr(lock->spec->name, '/'), *path;
	const char *base = slash == NULL ? lock->spec->name : slash + 1;
	char space[PATH_MAX];
	struct file_lock *file;
	struct stat status;
	int fd = -1;

	lock->fd = -1;
	/* without a host name, others can prove nothing from our record, nor we from theirs */
	if (host_id()->nameless != 0) {
		errno = host_id()->nameless;
		return error_set(error, ERROR_SYSTEM, "cannot find out the name of this host");
	}
	if (*base == '\0' || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
		return error_plain(error, ERROR_USAGE, "names a directory, not a lock in it");
	file = calloc(1, sizeof *file);
	if (file == NULL)
		return error_set(error, ERROR_SYSTEM, "out of memory");
	*file =
	    (struct file_lock){.object = lock->spec->method->object, .second = -1, .notify = -1};
	lock->files.state = file;
	lock->id.entry = base;
	path = path_directory(lock->spec->name, space);
	if (path != NULL)
		fd = call_open(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	lock->files.directory = descriptor_above_standard(fd);
	if (lock->files.directory < 0)
		return lockdir_failed(error, ERROR_OPEN, "cannot open its directory");
	if (note_file_system(lock, error) != 0)
		return -1;
	if (fstat(lock->files.directory, &status) != 0)
		return error_set(error, ERROR_OPEN, "cannot examine its directory");
	/* The directory and the name identify the lock.  A user who may write and search in the
	 * directory may take the lock.  The queue, however, admits users who have permission to
	 * read, because a user who may read a file may lock it.  So set the read bits for the users
	 * who may write and search. */
	lock->id.file = identity_of(&status);
	lock->id.owner = status.st_uid;
	lock->id.group = status.st_gid;
	lock->id.permissions =
	    S_IFDIR | (status.st_mode & status.st_mode << 1 & (S_IWGRP | S_IWOTH)) << 1;
	return 0;
}

int lockdir_status(const struct lock *lock, int directory, const char *name, struct stat *status)
{
	if (lock->spec->stale > 0 && !lock->files.state->local &&
	    file_system_ask(directory, name) != 0)
		return -1;
	return fstatat(directory, name, status, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
}

/* Is the path's directory still ours?  Another may have got the path while we waited, and newcomers
 * look for the lock there. */
bool lockdir_current(const struct lock *lock)
{
	char space[PATH_MAX];
	const char *path = path_directory(lock->spec->name, space);
	struct stat now;

	return path != NULL && stat(path, &now) == 0 && lock_is_on(lock, &now);
}

bool lockdir_same(const struct lock *lock, const char *name, int fd)
{
	struct stat named, opened;

	if (!lock->files.state->local)
		/* ask the server: if the directory has changed, the kernel looks up names anew */
		file_system_ask(lock->files.directory, "");
	if (fstat(fd, &opened) != 0 ||
	    fstatat(lock->files.directory, name, &named, AT_SYMLINK_NOFOLLOW) != 0)
		return false;
	errno = ENOENT;
	return same_file(identity_of(&named), identity_of(&opened));
}

bool lockdir_is_ours(const struct lock *lock)
{
	return lockdir_same(lock, lock->id.entry, lock->fd);
}

const char *lockdir_stuck_reason(const struct lock *lock)
{
	if (lock->end.stuck == EWOULDBLOCK)
		return "another semlock was stopped while taking it over (--stale): continue that "
		       "process, or end it";
	return strerror(lock->end.stuck);
}

DIR *lockdir_list(int fd)
{
	int copy = call_open(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	DIR *directory = copy < 0 ? NULL : fdopendir(copy);

	if (directory == NULL && copy >= 0)
		close(copy);
	return directory;
}

int lockdir_failed(struct error *error, enum kind kind, const char *what)
{
	bool resource = errno == ENOMEM || errno == EMFILE || errno == ENFILE || errno == ENOLCK;

	return error_set(error, resource ? ERROR_SYSTEM : kind, "%s", what);
}

enum outcome lockdir_not_named(struct error *error)
{
	return errno == EEXIST || errno == ENOTEMPTY
	           ? AGAIN
	           : lockdir_failed(error, ERROR_CREATE, "cannot create");
}

int lockdir_not_a_lock(const struct lock *lock, struct error *error)
{
	return error_plain(error, ERROR_OPEN,
	    "is not a lock of -m %s: that needs an unused name, or %s; nothing was changed",
	    lock->spec->method->name, lock->files.state->object->what);
}

/* ---- names of our own ---- */

static uint32_t where_we_are(void)
{
	char text[HOST_SIZE + BOOT_SIZE + 24];

	snprintf(text, sizeof text, "%s%s%llu", host_id()->host, host_id()->boot,
	    (unsigned long long)host_id()->pidns);
	return (uint32_t)text_hash(text);
}

/* Write the beginning of LOCK's temporary names into PREFIX.  Cut the lock's own name, to leave
 * room for the rest. */
static int temporary_prefix(const struct lock *lock, char prefix[NAME_SIZE])
{
	return snprintf(prefix, NAME_SIZE, ".%.180s.semlock.", lock->id.entry);
}

void lockdir_temporary_name(const struct lock *lock, const char *kind, char name[NAME_SIZE])
{
	static uint32_t count;
	char prefix[NAME_SIZE];

	temporary_prefix(lock, prefix);
	snprintf(name, NAME_SIZE, "%.200s%s%ld.%08x.%08x", prefix, kind, (long)getpid(),
	    where_we_are(), (uint32_t)clock_realtime() + ++count);
}

int lockdir_create_file(const struct lock *lock, char name[NAME_SIZE], mode_t mode)
{
	int fd = -1;

	name[0] = '\0';
	if (!lock->files.state->named)
		UNINTERRUPTED(fd,
		    FAULT_POINT("lockdir.tmpfile")
			? -1
			: openat(lock->files.directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode));
	if (fd >= 0)
		return fd;
	do {
		lockdir_temporary_name(lock, "", name);
		fd = openat(lock->files.directory, name,
		    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	} while (fd < 0 && (errno == EEXIST || errno == EINTR));
	return fd;
}

/* ---- times and contents ---- */

int64_t lockdir_now(const struct lock *lock)
{
	char name[NAME_SIZE];
	int fd = lockdir_create_file(lock, name, 0600);
	struct stat status;
	int64_t now = -1;

	if (fd < 0)
		return -1;
	if (fstat(fd, &status) == 0)
		now = lockdir_mtime(&status);
	if (name[0] != '\0')
		call_unlink(lock->files.directory, name, 0);
	close(fd);
	return now;
}

int64_t lockdir_mtime(const struct stat *status)
{
	return (int64_t)status->st_mtim.tv_sec * SECOND + status->st_mtim.tv_nsec;
}

void lockdir_read_record(int fd, struct record *record)
{
	char text[RECORD_LIMIT + 1];
	size_t used = 0;
	ssize_t got;

	do {
		UNINTERRUPTED(got, pread(fd, text + used, sizeof text - used, (off_t)used));
		used += got > 0 ? (size_t)got : 0;
	} while (got > 0 && used < sizeof text);
	record_read(record, text, used);
	if (got < 0) /* a record that cannot be read is not empty: it may name a living holder */
		*record = (struct record){.kind = RECORD_JUNK};
}

int lockdir_nap(int64_t duration)
{
	return nap(duration);
}

/* ---- what killed semlocks have left ---- */

/* The object open as FD: did a killed semlock leave it behind?  REST is what follows the prefix in
 * its name.  An object under flock(2) is in use; else its maker's PID decides or, if that PID means
 * nothing here, its age.  Returns true with STATUS filled. */
static bool is_abandoned(const struct lock *lock, const char *rest, int fd, struct stat *status)
{
	unsigned where;
	int64_t now;
	char *end;
	long pid;

	if (strncmp(rest, "gone.", 5) == 0)
		rest += 5;
	errno = 0;
	pid = strtol(rest, &end, 10);
	if (errno != 0 || pid <= 0 || pid > INT_MAX || sscanf(end, ".%8x.%*8x", &where) != 1 ||
	    call_try_flock(fd) != 0 || fstat(fd, status) != 0)
		return false;
	if (where == where_we_are())
		return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
	now = lockdir_now(lock);
	return now >= 0 && now - lockdir_mtime(status) >
	                       (lock->files.state->local ? SWEEP_AGE_LOCAL : SWEEP_AGE_SHARED);
}

void lockdir_sweep(const struct lock *lock)
{
	char prefix[NAME_SIZE];
	size_t length = (size_t)temporary_prefix(lock, prefix);
	DIR *directory = lockdir_list(lock->files.directory);
	const struct dirent *entry;
	struct stat status;
	int fd;

	if (directory == NULL)
		return;
	while ((entry = readdir(directory)) != NULL) {
		if (strncmp(entry->d_name, prefix, length) != 0)
			continue;
		fd = openat(lock->files.directory, entry->d_name,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
		if (fd < 0)
			continue;
		if (is_abandoned(lock, entry->d_name + length, fd, &status)) {
			if (S_ISDIR(status.st_mode))
				call_unlink(fd, "pid", 0);
			call_unlink(lock->files.directory, entry->d_name,
			    S_ISDIR(status.st_mode) ? AT_REMOVEDIR : 0);
		}
		close(fd);
	}
	closedir(directory);
}
