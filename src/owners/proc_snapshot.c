/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lock/queue.h"
#include "owners/proc_snapshot.h"
#include "sys/file_system.h"
#include "sys/files.h"

/* O_PATH: a plain open could hang (a FIFO) or be forbidden, and its close would drop a posix lock that
 * this process has on the file. */
static int identify_file(struct proc_snapshot *snapshot, unsigned file, const char *path, mode_t *mode)
{
	int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat stat;

	if (fd < 0)
		return -1;
	if (fstat(fd, &stat) != 0) {
		close(fd);
		return -1;
	}
	snapshot->files[file] = (struct identity){stat.st_dev, stat.st_ino};
	file_system_device(fd, stat.st_dev, &snapshot->devices[file].major, &snapshot->devices[file].minor);
	close(fd);
	snapshot->nfiles = file + 1;
	*mode = stat.st_mode;
	return 0;
}

static bool is_about(const struct proc_snapshot *snapshot, unsigned file, const struct procfs_lock *lock)
{
	return lock->inode == (unsigned long long)snapshot->files[file].inode &&
	       lock->major == snapshot->devices[file].major &&
	       lock->minor == snapshot->devices[file].minor;
}

static bool append_line(struct proc_snapshot *snapshot, const struct listed_lock *entry)
{
	struct listed_lock *list = snapshot->listed;

	if ((snapshot->nlisted & (snapshot->nlisted - 1)) == 0)
		list = realloc(list, (snapshot->nlisted == 0 ? 1 : 2 * snapshot->nlisted) * sizeof *list);
	if (list == NULL)
		return false;
	snapshot->listed = list;
	list[snapshot->nlisted++] = *entry;
	return true;
}

static int read_list_once(struct proc_snapshot *snapshot, struct error *error)
{
	FILE *locks = fopen("/proc/locks", "re");
	char line[256], page[4096];
	struct listed_lock entry = {0};

	snapshot->nlisted = 0;
	if (locks == NULL)
		return error_set(error, ERROR_UNAVAILABLE,
		    "cannot find the holder: cannot read /proc/locks");
	setvbuf(locks, page, _IOFBF, sizeof page); /* between two reads the list may change */
	while (fgets(line, sizeof line, locks) != NULL) {
		if (!procfs_lock_line(line, &entry.lock))
			continue;
		for (entry.file = 0; entry.file < snapshot->nfiles; entry.file++)
			if (is_about(snapshot, entry.file, &entry.lock) && !append_line(snapshot, &entry)) {
				fclose(locks);
				return error_set(error, ERROR_SYSTEM, "no memory");
			}
	}
	fclose(locks);
	return 0;
}

static bool lists_lock(const struct proc_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->nlisted; i++)
		if (snapshot->listed[i].file == SNAPSHOT_LOCK)
			return true;
	return false;
}

/* While /proc/locks changes, a read of it can leave out a line, or give one twice: read it until two reads in
 * a row give as many.  And no lock is free because a read or two have none. */
static int read_list(struct proc_snapshot *snapshot, struct error *error)
{
	int reads = snapshot->nfiles == 0 ? 1 : 6, result = read_list_once(snapshot, error);
	bool steady = false;
	size_t before;

	while (--reads > 0 && result == 0 && !(steady && (lists_lock(snapshot) || reads < 3))) {
		before = snapshot->nlisted;
		result = read_list_once(snapshot, error);
		steady = snapshot->nlisted == before;
	}
	return result;
}

bool proc_snapshot_account(struct proc_snapshot *snapshot, unsigned file, const struct procfs_lock *lock)
{
	struct listed_lock *entry;

	for (size_t i = 0; i < snapshot->nlisted; i++) {
		entry = &snapshot->listed[i];
		if (!entry->accounted && entry->file == file && procfs_same_lock(&entry->lock, lock)) {
			entry->accounted = true;
			return true;
		}
	}
	return false;
}

/* Keep the lines that are in EARLIER as well, each of those once. */
static void keep_common(struct proc_snapshot *snapshot, struct proc_snapshot *earlier)
{
	size_t kept = 0;

	for (size_t i = 0; i < snapshot->nlisted; i++)
		if (proc_snapshot_account(earlier, snapshot->listed[i].file, &snapshot->listed[i].lock))
			snapshot->listed[kept++] = snapshot->listed[i];
	snapshot->nlisted = kept;
}

void proc_snapshot_forget(struct proc_snapshot *snapshot)
{
	open_fds_forget(&snapshot->open_fds);
	free(snapshot->listed);
	*snapshot = (struct proc_snapshot){0};
}

static int fill_snapshot(struct proc_snapshot *snapshot, const struct lock *lock, struct error *error)
{
	char queue[QUEUE_PATH_SIZE];
	struct proc_snapshot earlier;
	mode_t mode;
	int result;

	queuefile_path(lock, queue);
	identify_file(snapshot, SNAPSHOT_QUEUE, queue, &mode);
	earlier = *snapshot;
	result = read_list(&earlier, error);
	if (result == 0) {
		snapshot->open_fds = (struct open_fds){.files = snapshot->files, .nfiles = snapshot->nfiles};
		open_fds_find(&snapshot->open_fds);
		result = read_list(snapshot, error);
		keep_common(snapshot, &earlier);
	}
	free(earlier.listed);
	if (result != 0)
		proc_snapshot_forget(snapshot);
	return result;
}

static const char *descriptor_path(int fd, char path[32])
{
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return path;
}

/* The lock's file does not exist: it is free if its directory does.  Else errno says what is missing. */
static bool can_be_created(const struct lock *lock)
{
	char space[PATH_MAX];
	const char *directory = lock->spec->name == NULL ? "." : path_directory(lock->spec->name, space);

	return directory != NULL && access(directory, F_OK) == 0;
}

int proc_snapshot_take(struct proc_snapshot *snapshot, const struct lock *lock, struct error *error)
{
	char descriptor[32];
	struct lock copy = *lock;
	mode_t mode;

	*snapshot = (struct proc_snapshot){0};
	if (identify_file(snapshot, SNAPSHOT_LOCK,
		lock->spec->name != NULL ? lock->spec->name : descriptor_path(lock->fd, descriptor), &mode) != 0) {
		if (errno == ENOENT && can_be_created(lock))
			return 0;
		return error_set(error, ERROR_OPEN, "cannot look at it");
	}
	if (lock->spec->name != NULL && (S_ISFIFO(mode) || S_ISSOCK(mode)))
		return error_plain(error, ERROR_OPEN, "is a %s, not a file to lock",
		    S_ISFIFO(mode) ? "FIFO" : "socket");
	copy.id.device = snapshot->files[SNAPSHOT_LOCK].device;
	copy.id.inode = snapshot->files[SNAPSHOT_LOCK].inode;
	return fill_snapshot(snapshot, &copy, error);
}

/* Without an object, files[SNAPSHOT_LOCK] stays zero and no line is about it. */
int proc_snapshot_take_object(struct proc_snapshot *snapshot, const struct lock *lock, int object,
    struct error *error)
{
	char descriptor[32];
	mode_t mode;

	*snapshot = (struct proc_snapshot){0};
	if (object >= 0 && identify_file(snapshot, SNAPSHOT_LOCK, descriptor_path(object, descriptor), &mode) != 0)
		return error_set(error, ERROR_OPEN, "cannot look at it");
	return fill_snapshot(snapshot, lock, error);
}
