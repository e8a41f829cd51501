/* SPDX-License-Identifier: MIT */
/* A lock is seen twice: in /proc/locks, which every user may read, and in the fdinfo of the
 * descriptors that carry it, which show its holder.  The holder of a line without such a descriptor
 * is unseen. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lock/queue.h"
#include "owners/sources.h"
#include "sys/file_system.h"
#include "sys/files.h"

/* ---- the snapshot ---- */

/* Returns false with errno set if FD is -1, or its file cannot be looked at. */
static bool identify(struct snapshot *snapshot, unsigned file, int fd, struct stat *status)
{
	if (fd < 0 || fstat(fd, status) != 0)
		return false;
	snapshot->files[file] = (struct identity){status->st_dev, status->st_ino};
	file_system_device(fd, status->st_dev, &snapshot->devices[file].major,
	    &snapshot->devices[file].minor);
	snapshot->nfiles = file + 1;
	return true;
}

/* O_PATH: a plain open could hang (a FIFO) or be forbidden, and its close would drop a posix lock
 * that this process has on the file. */
static bool identify_path(struct snapshot *snapshot, unsigned file, const char *path,
    struct stat *status)
{
	int fd = open(path, O_PATH | O_CLOEXEC);
	bool there = identify(snapshot, file, fd, status);

	if (fd >= 0)
		close(fd);
	return there;
}

static bool is_about(const struct snapshot *snapshot, unsigned file, const struct procfs_lock *lock)
{
	return lock->inode == (unsigned long long)snapshot->files[file].inode &&
	       lock->major == snapshot->devices[file].major &&
	       lock->minor == snapshot->devices[file].minor;
}

static bool append_line(struct snapshot *snapshot, const struct listed_lock *entry)
{
	struct listed_lock *list = snapshot->listed;

	if ((snapshot->nlisted & (snapshot->nlisted - 1)) == 0) /* full at each power of two */
		list = realloc(list,
		    (snapshot->nlisted == 0 ? 1 : 2 * snapshot->nlisted) * sizeof *list);
	if (list == NULL)
		return false;
	snapshot->listed = list;
	list[snapshot->nlisted++] = *entry;
	return true;
}

/* The line of SNAPSHOT about FILE that has LOCK, and is not accounted for yet; NULL: none. */
static struct listed_lock *find_line(const struct snapshot *snapshot, unsigned file,
    const struct procfs_lock *lock)
{
	struct listed_lock *entry;

	for (size_t i = 0; i < snapshot->nlisted; i++) {
		entry = &snapshot->listed[i];
		if (!entry->accounted && entry->file == file &&
		    procfs_same_lock(&entry->lock, lock))
			return entry;
	}
	return NULL;
}

/* While /proc/locks changes, a read of it can give a lock twice, each time with the waiters behind
 * it: but only shared locks can be alike.  (A ticket counts once, however often it is listed.)
 * Returns the number of lines about the lock itself, or -1 with ERROR filled. */
static int read_list_once(struct snapshot *snapshot, struct error *error)
{
	char line[256], page[PROCFS_PAGE];
	FILE *locks = procfs_locks(page);
	struct listed_lock entry = {0};
	bool twice = false;
	int count = 0;

	snapshot->nlisted = 0;
	if (locks == NULL)
		return error_set(error, ERROR_UNAVAILABLE,
		    "cannot find the holder: cannot read /proc/locks");
	while (fgets(line, sizeof line, locks) != NULL) {
		if (!procfs_lock_line(line, &entry.lock))
			continue;
		for (entry.file = 0; entry.file < snapshot->nfiles; entry.file++) {
			if (!is_about(snapshot, entry.file, &entry.lock))
				continue;
			if (!entry.lock.waiting)
				twice = entry.file == SNAPSHOT_LOCK && entry.lock.exclusive &&
				        find_line(snapshot, SNAPSHOT_LOCK, &entry.lock) != NULL;
			if (twice)
				continue;
			count += entry.file == SNAPSHOT_LOCK;
			if (!append_line(snapshot, &entry)) {
				fclose(locks);
				return error_set(error, ERROR_SYSTEM, "no memory");
			}
		}
	}
	fclose(locks);
	return count;
}

/* A read can leave out a lock as well: read until two reads in a row give as many lines.  And no
 * lock is free because a read or two have none. */
static int read_list(struct snapshot *snapshot, struct error *error)
{
	int reads = snapshot->nfiles == 0 ? 1 : 6, count = read_list_once(snapshot, error);
	bool steady = false;
	size_t before;

	while (--reads > 0 && count >= 0 && !(steady && (count > 0 || reads < 3))) {
		before = snapshot->nlisted;
		count = read_list_once(snapshot, error);
		steady = snapshot->nlisted == before;
	}
	return count < 0 ? -1 : 0;
}

/* Mark the line that find_line() gives as accounted for.  Returns whether there was one. */
static bool account(struct snapshot *snapshot, unsigned file, const struct procfs_lock *lock)
{
	struct listed_lock *entry = find_line(snapshot, file, lock);

	if (entry != NULL)
		entry->accounted = true;
	return entry != NULL;
}

/* Read the list before and after the descriptors, and keep the lines that are in both, each of the
 * first once. */
static int fill_snapshot(struct snapshot *snapshot, const struct lock *lock, struct error *error)
{
	char queue[QUEUE_PATH_SIZE];
	struct snapshot earlier;
	struct listed_lock *line;
	struct stat status;
	size_t kept = 0;
	int result;

	queuefile_path(lock, queue);
	identify_path(snapshot, SNAPSHOT_QUEUE, queue, &status);
	earlier = *snapshot;
	result = read_list(&earlier, error);
	if (result == 0) {
		snapshot->open_fds =
		    (struct open_fds){.files = snapshot->files, .nfiles = snapshot->nfiles};
		open_fds_find(&snapshot->open_fds);
		result = read_list(snapshot, error);
	}
	for (size_t i = 0; i < snapshot->nlisted; i++) {
		line = &snapshot->listed[i];
		if (account(&earlier, line->file, &line->lock))
			snapshot->listed[kept++] = *line;
	}
	snapshot->nlisted = kept;
	free(earlier.listed);
	if (result != 0)
		snapshot_forget(snapshot);
	return result;
}

void snapshot_forget(struct snapshot *snapshot)
{
	open_fds_forget(&snapshot->open_fds);
	free(snapshot->listed);
	*snapshot = (struct snapshot){0};
}

/* A lock whose file does not exist is free, if its directory does: else errno says what is
 * missing. */
int snapshot_take(struct snapshot *snapshot, const struct lock *lock, struct error *error)
{
	const char *name = lock->spec->name, *directory;
	struct lock itself = {0};
	char space[PATH_MAX];
	struct stat file;

	*snapshot = (struct snapshot){0};
	if (name == NULL ? !identify(snapshot, SNAPSHOT_LOCK, lock->fd, &file)
			 : !identify_path(snapshot, SNAPSHOT_LOCK, name, &file)) {
		directory = name != NULL && errno == ENOENT ? path_directory(name, space) : NULL;
		if (directory != NULL && access(directory, F_OK) == 0)
			return 0;
		return error_set(error, ERROR_OPEN, "cannot look at it");
	}
	if (name != NULL && (S_ISFIFO(file.st_mode) || S_ISSOCK(file.st_mode)))
		return error_plain(error, ERROR_OPEN, "is a %s, not a file to lock",
		    S_ISFIFO(file.st_mode) ? "FIFO" : "socket");
	itself.id.device = file.st_dev;
	itself.id.inode = file.st_ino;
	return fill_snapshot(snapshot, &itself, error);
}

int snapshot_take_object(struct snapshot *snapshot, const struct lock *lock, int object,
    struct error *error)
{
	struct stat file;

	*snapshot = (struct snapshot){0};
	if (object >= 0 && !identify(snapshot, SNAPSHOT_LOCK, object, &file))
		return error_set(error, ERROR_OPEN, "cannot look at it");
	return fill_snapshot(snapshot, lock, error);
}

/* ---- the holders ---- */

/* Is the lock in OPEN_FD the one that OWNER has: through the same open file description, or, for a
 * lock of the process (posix), by the same process? */
static bool is_same_hold(const struct owner *owner, const struct procfs_lock *owned,
    const struct open_fd *open_fd)
{
	const struct procfs_lock *seen = &open_fd->lock;
	const struct member *member = &owner->members[0];
	int same;

	if (!procfs_same_lock(owned, seen))
		return false;
	if (seen->kind == KIND_POSIX)
		return member->pid == open_fd->pid;
	same = open_fds_same_description(member->pid, member->fd, open_fd->pid, open_fd->fd);
	return same < 0 ? seen->exclusive || seen->pid > 0 : same == 1;
}

static void add_seen(struct owners *found, struct snapshot *snapshot, unsigned kinds)
{
	struct procfs_lock *locks = calloc(snapshot->open_fds.count + 1, sizeof *locks);
	struct owner *owner;
	const struct open_fd *open_fd;
	size_t j;

	for (size_t i = 0; locks != NULL && i < snapshot->open_fds.count; i++) {
		open_fd = &snapshot->open_fds.list[i];
		if (open_fd->file != SNAPSHOT_LOCK || !open_fd->locked ||
		    !owners_count_lock(&open_fd->lock, kinds))
			continue;
		for (j = 0; j < found->count; j++)
			if (is_same_hold(&found->list[j], &locks[j], open_fd))
				break;
		if (j == found->count) {
			owner = owners_add(found);
			if (owner == NULL)
				break;
			owner_describe(owner, &open_fd->lock);
			owner->taker = open_fd->lock.pid > 0 ? (pid_t)open_fd->lock.pid : 0;
			locks[j] = open_fd->lock;
			account(snapshot, SNAPSHOT_LOCK, &open_fd->lock);
		}
		owners_join(found, &found->list[j], open_fd->pid, open_fd->fd);
	}
	found->failed = found->failed || locks == NULL;
	free(locks);
}

/* The process that took the lock, if it lives and has the lock still: no other process can have it
 * named so.  Else the member whose parent is no member; the oldest of them, if a command has left
 * several behind. */
static void find_root(struct owner *owner, struct process *root)
{
	struct process process;

	root->pid = 0;
	if (owner_has(owner, owner->taker) && process_read(owner->taker, root))
		return;
	root->pid = 0;
	for (size_t i = 0; i < owner->nmembers; i++)
		if (process_read(owner->members[i].pid, &process) &&
		    !owner_has(owner, process.parent) &&
		    (root->pid == 0 || process.started < root->started))
			*root = process;
}

static pid_t find_command(const struct owner *owner, const struct process *supervisor)
{
	unsigned long long oldest = ULLONG_MAX;
	struct procfs_stat stat;
	pid_t command = 0;

	for (size_t i = 0; i < owner->nmembers; i++)
		if (process_stat(owner->members[i].pid, &stat) && stat.parent == supervisor->pid &&
		    stat.started < oldest) {
			command = owner->members[i].pid;
			oldest = stat.started;
		}
	return command != 0 ? command : process_youngest_child(supervisor->pid);
}

/* A command starts when the lock is taken: its start is exact.  A process with a lock in a
 * descriptor of its own started earlier. */
static void name_holder(struct owner *owner)
{
	struct process root, command;
	pid_t pid;

	find_root(owner, &root);
	if (root.pid == 0)
		return; /* all have ended since */
	owner->process = root;
	if (strcmp(root.name, "semlock") == 0 || strcmp(root.name, "flock") == 0) {
		pid = find_command(owner, &root);
		if (pid != 0 && process_read(pid, &command) && command.parent == root.pid) {
			owner->process = command;
			owner->supervisor = root.pid;
			owner->since_exact = true;
		}
	}
	owner->since = process_start(owner->process.started);
}

/* Lines without a descriptor.  The process that a posix lock's line names holds it, and is alive;
 * the one that took another kind may have ended, and its PID be another process's. */
static void add_unseen(struct owners *found, struct snapshot *snapshot, unsigned kinds)
{
	struct owner *owner;
	struct listed_lock *entry;

	for (size_t i = 0; i < snapshot->nlisted; i++) {
		entry = &snapshot->listed[i];
		if (entry->file != SNAPSHOT_LOCK || entry->lock.waiting || entry->accounted ||
		    !owners_count_lock(&entry->lock, kinds))
			continue;
		owner = owners_add(found);
		if (owner == NULL)
			return;
		owner_describe(owner, &entry->lock);
		owner->taker = entry->lock.pid > 0 ? (pid_t)entry->lock.pid : 0;
		if (entry->lock.kind == KIND_POSIX && owner->taker > 0) {
			owners_join(found, owner, owner->taker, -1);
			name_holder(owner);
		}
		found->unseen = found->unseen || owner->process.pid == 0;
	}
}

/* An unseen slot of a flock is two lines, and nothing pairs them: drop as many shared flocks as
 * there are slots. */
static void unite_unseen_slots(struct owners *found)
{
	size_t slots = 0;

	for (size_t i = 0; i < found->count; i++)
		slots += found->list[i].mode == MODE_SLOT && found->list[i].nmembers == 0;
	for (size_t i = found->count; i > 0 && slots > 0; i--)
		if (found->list[i - 1].nmembers == 0 && found->list[i - 1].kind == KIND_FLOCK &&
		    found->list[i - 1].mode == MODE_SHARED) {
			owners_drop(found, i - 1);
			slots--;
		}
}

static bool have_ended(const struct owner *owner)
{
	for (size_t i = 0; i < owner->nmembers; i++)
		if (kill(owner->members[i].pid, 0) == 0 || errno != ESRCH)
			return false;
	return true;
}

void kernel_owners_add(struct owners *found, struct snapshot *snapshot, unsigned kinds)
{
	struct owner *owner;

	found->failed = snapshot->open_fds.failed;
	add_seen(found, snapshot, kinds);
	for (size_t i = found->count; i > 0; i--) {
		owner = &found->list[i - 1];
		name_holder(owner);
		/* A process that ended during the search holds nothing.  One that could not be
		 * read, for want of a descriptor, has not ended. */
		if (owner->nmembers > 0 && owner->process.pid == 0 && have_ended(owner))
			owners_drop(found, i - 1);
	}
	add_unseen(found, snapshot, kinds);
	unite_unseen_slots(found);
	found->holders = found->count;
}

bool kernel_owner_outside(const char *path, unsigned kinds)
{
	struct flock bytes = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct stat file;
	bool locked = false;
	int fd = -1;

	if (host_id()->pidns != FIRST_PIDNS && stat(path, &file) == 0 &&
	    (S_ISREG(file.st_mode) || S_ISDIR(file.st_mode)))
		fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if ((kinds & KIND_FLOCK) != 0)
		locked = call_try_flock(fd) != 0 && errno == EWOULDBLOCK;
	if (!locked && (kinds & (KIND_OFD | KIND_POSIX)) != 0)
		locked = fcntl(fd, F_OFD_GETLK, &bytes) == 0 && bytes.l_type != F_UNLCK;
	close(fd);
	return locked;
}
