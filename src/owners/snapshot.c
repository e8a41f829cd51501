/* SPDX-License-Identifier: MIT */
/* The descriptors that processes have open, and their fdinfo, show which locks a file carries, and
 * through which processes.  /proc/locks shows the rest. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "owners/sources.h"
#include "sys/crash_points.h"
#include "sys/file_system.h"
#include "sys/files.h"

/* ---- /proc/locks ---- */

enum { LINES_OF_PAGE = 64 }; /* about as many lines as a read returns */

struct lock_list {
	int64_t read_at; /* ns on clock_now()'s clock */
	struct procfs_lock *lines;
	size_t count;
	bool may_lack; /* a line may be missing: the list may change between two reads */
};

static bool append_line(struct lock_list *list, const struct procfs_lock *line)
{
	struct procfs_lock *lines = list->lines;

	if ((list->count & (list->count - 1)) == 0) /* full at 0 and each power of two */
		lines = realloc(lines, (list->count == 0 ? 1 : 2 * list->count) * sizeof *lines);
	if (lines == NULL)
		return false;
	list->lines = lines;
	lines[list->count++] = *line;
	return true;
}

/* Read at least a page, even when LIMIT is spent: most machines have no more locks, and that page
 * can name the process to look into.  Returns 0, or -1 with ERROR filled. */
static int read_lines(struct lock_list *list, struct allowance *limit, struct error *error)
{
	char line[256], page[PROCFS_PAGE];
	FILE *locks = procfs_locks(page);
	struct procfs_lock lock;
	size_t length = 0;
	int result = 0;

	if (locks == NULL)
		return error_set(error, ERROR_UNAVAILABLE,
		    "cannot find the holder: cannot read /proc/locks");
	list->read_at = clock_now();
	while (result == 0 && fgets(line, sizeof line, locks) != NULL) {
		length += strlen(line);
		if (!procfs_lock_line(line, &lock))
			continue;
		if (!append_line(list, &lock))
			result = error_set(error, ERROR_SYSTEM, "out of memory");
		if (list->count % LINES_OF_PAGE == 0 && allowance_spent(limit))
			break;
	}
	list->may_lack = feof(locks) && (length == 0 || length >= PROCFS_PAGE_FILLED);
	fclose(locks);
	return result;
}

void search_terms_forget(struct search_terms *terms)
{
	if (terms->list != NULL)
		free(terms->list->lines);
	free(terms->list);
	terms->list = NULL;
}

/* May /proc/locks be read, or read once more? */
static bool may_read(const struct search_terms *terms)
{
	return terms->list_use != LIST_NEVER &&
	       (terms->list == NULL || clock_now() - terms->list->read_at >= terms->list_pause);
}

static bool is_about(const struct snapshot *snapshot, const struct procfs_lock *lock)
{
	return lock->inode == (unsigned long long)snapshot->file.inode &&
	       lock->major == snapshot->major && lock->minor == snapshot->minor;
}

struct listed_lock *snapshot_line(const struct snapshot *snapshot, const struct procfs_lock *lock)
{
	struct listed_lock *entry;

	for (size_t i = 0; i < snapshot->nlisted; i++) {
		entry = &snapshot->listed[i];
		if (!entry->accounted && procfs_same_lock(&entry->lock, lock))
			return entry;
	}
	return NULL;
}

/* Add LINE's ticket, if LINE is one in a queue that this process may not open. */
static void pick_ticket(struct snapshot *snapshot, const struct procfs_lock *line)
{
	const struct identity *queue = &snapshot->closed_queue;

	if (queue->inode != 0 && line->kind == KIND_POSIX && line->exclusive && !line->waiting &&
	    line->inode == (unsigned long long)queue->inode &&
	    line->major == major(queue->device) && line->minor == minor(queue->device))
		tickets_add(&snapshot->tickets, line->first, (pid_t)line->pid);
}

/* Keep the lines of LIST about SNAPSHOT's file.  While /proc/locks changes, a read can return one
 * lock twice, each time followed by its waiters: drop the second copy of an exclusive lock, and its
 * waiters.  Equal lines of shared locks can be two locks.  Returns false without memory. */
static bool pick_lines(struct snapshot *snapshot, const struct lock_list *list)
{
	struct listed_lock entry = {0};
	bool twice = false;

	free(snapshot->listed);
	snapshot->nlisted = 0;
	snapshot->listed = calloc(list->count + 1, sizeof *snapshot->listed);
	if (snapshot->listed == NULL)
		return false;
	for (size_t i = 0; i < list->count; i++) {
		entry.lock = list->lines[i];
		pick_ticket(snapshot, &entry.lock);
		if (!is_about(snapshot, &entry.lock))
			continue;
		if (!entry.lock.waiting)
			twice =
			    entry.lock.exclusive && snapshot_line(snapshot, &entry.lock) != NULL;
		if (!twice)
			snapshot->listed[snapshot->nlisted++] = entry;
	}
	return true;
}

/* Read /proc/locks once.  Returns 0, or -1 with ERROR filled. */
static int read_list(struct snapshot *snapshot, struct search *search, struct error *error)
{
	struct search_terms *terms = search->terms;

	search_terms_forget(terms);
	terms->list = calloc(1, sizeof *terms->list);
	if (terms->list == NULL)
		return error_set(error, ERROR_SYSTEM, "out of memory");
	if (read_lines(terms->list, &search->limit, error) != 0) {
		search_terms_forget(terms);
		return -1;
	}
	if (!pick_lines(snapshot, terms->list))
		return error_set(error, ERROR_SYSTEM, "out of memory");
	snapshot->list_state = LIST_FRESH;
	return 0;
}

int snapshot_list(struct snapshot *snapshot, struct search *search, bool twice, struct error *error)
{
	if (may_read(search->terms)) {
		if (read_list(snapshot, search, error) != 0)
			return -1;
		return twice && search->terms->list->may_lack && snapshot->nlisted == 0
		           ? read_list(snapshot, search, error)
		           : 0;
	}
	if (search->terms->list == NULL)
		return 0;
	if (!pick_lines(snapshot, search->terms->list))
		return error_set(error, ERROR_SYSTEM, "out of memory");
	snapshot->list_state =
	    search->terms->list->read_at < search->terms->progress.began ? LIST_OLDER : LIST_FRESH;
	return 0;
}

/* ---- the descriptors ---- */

/* Set SNAPSHOT's file to FD's, and fill STATUS.  Returns false with errno set if FD is -1, or its
 * file cannot be examined. */
static bool identify(struct snapshot *snapshot, int fd, struct stat *status)
{
	if (fd < 0 || fstat(fd, status) != 0)
		return false;
	snapshot->file = identity_of(status);
	file_system_device(fd, status->st_dev, &snapshot->major, &snapshot->minor);
	return true;
}

/* The same for the file PATH.  O_PATH: a plain open could hang (a FIFO) or be forbidden, and
 * closing it would drop this process's posix lock on the file. */
static bool identify_path(struct snapshot *snapshot, const char *path, struct stat *status)
{
	int fd = open(path, O_PATH | O_CLOEXEC);
	bool there = identify(snapshot, fd, status);

	if (fd >= 0)
		close(fd);
	return there;
}

static void list_queue(struct snapshot *snapshot, const char path[QUEUE_PATH_SIZE],
    struct search *search)
{
	struct stat file;

	if (queue_list(&snapshot->tickets, path, &search->limit) != 0 && stat(path, &file) == 0)
		snapshot->closed_queue = identity_of(&file);
}

/* The file is known: look into all processes, or only into SEARCH->known. */
static void find_open_fds(struct snapshot *snapshot, struct search *search)
{
	if (search->known == NULL) {
		open_fds_find(&snapshot->open_fds, search->terms->walk);
		return;
	}
	for (size_t i = 0; i < search->known->count; i++)
		open_fds_of(&snapshot->open_fds, search->known->pids[i]);
}

static bool see_unless_it_waits(pid_t pid, void *context)
{
	struct snapshot *snapshot = context;

	return tickets_include(&snapshot->tickets, pid) || open_fds_see(pid, &snapshot->open_fds);
}

static void see_tickets(struct snapshot *snapshot, const struct tickets *these,
    const struct tickets *except)
{
	bool go_on = true;

	for (size_t i = 0; i < these->count && go_on; i++)
		if (these->list[i].pid > 0 && !tickets_include(except, these->list[i].pid))
			go_on = open_fds_see(these->list[i].pid, &snapshot->open_fds);
}

/* Look into all processes except the waiters, which rarely hold a lock on the file.  But a waiter
 * whose ticket is gone after the walk may have taken the lock meanwhile: look into it. */
static void find_but_waiters(struct snapshot *snapshot, const char path[QUEUE_PATH_SIZE],
    struct search *search)
{
	struct tickets before;

	list_queue(snapshot, path, search);
	before = snapshot->tickets;
	CRASH_POINT("snapshot.listed");
	process_each(see_unless_it_waits, snapshot);
	list_queue(snapshot, path, search);
	see_tickets(snapshot, &before, &snapshot->tickets);
	free(before.list);
	snapshot->without_waiters = snapshot->tickets.count > 0;
}

bool snapshot_add_waiters(struct snapshot *snapshot)
{
	static const struct tickets none;
	const bool adds = snapshot->without_waiters;

	if (adds)
		see_tickets(snapshot, &snapshot->tickets, &none);
	snapshot->without_waiters = false;
	return adds;
}

static void fill_snapshot(struct snapshot *snapshot, const struct lock *lock, struct search *search)
{
	char path[QUEUE_PATH_SIZE];

	queuefile_path(lock, path);
	snapshot->open_fds =
	    (struct open_fds){.files = &snapshot->file, .nfiles = 1, .limit = &search->limit};
	if (search->terms->without_waiters && snapshot->file.inode != 0) {
		find_but_waiters(snapshot, path, search);
		return;
	}
	if (snapshot->file.inode != 0)
		find_open_fds(snapshot, search);
	list_queue(snapshot, path, search);
}

void snapshot_forget(struct snapshot *snapshot)
{
	open_fds_forget(&snapshot->open_fds);
	free(snapshot->tickets.list);
	free(snapshot->listed);
	*snapshot = (struct snapshot){0};
}

bool snapshot_has_idler(const struct snapshot *snapshot)
{
	const struct open_fds *open_fds = &snapshot->open_fds;
	const struct open_fd *open_fd;

	for (size_t i = 0; i < open_fds->count; i++) {
		open_fd = &open_fds->list[i];
		if (!open_fd->locked && open_fd->pid != getpid() &&
		    !tickets_include(&snapshot->tickets, open_fd->pid))
			return true;
	}
	return false;
}

/* A lock whose file does not exist is free, provided that its directory exists: otherwise errno
 * says what is missing. */
int snapshot_take(struct snapshot *snapshot, const struct lock *lock, struct search *search,
    struct error *error)
{
	const char *name = lock->spec->name, *directory;
	struct lock itself = {0};
	char space[PATH_MAX];
	struct stat file;

	*snapshot = (struct snapshot){0};
	if (name == NULL ? !identify(snapshot, lock->fd, &file)
			 : !identify_path(snapshot, name, &file)) {
		directory = name != NULL && errno == ENOENT ? path_directory(name, space) : NULL;
		if (directory != NULL && access(directory, F_OK) == 0)
			return 0;
		return error_set(error, ERROR_OPEN, "cannot examine it");
	}
	if (name != NULL && (S_ISFIFO(file.st_mode) || S_ISSOCK(file.st_mode)))
		return error_plain(error, ERROR_OPEN, "is a %s, not a file to lock",
		    S_ISFIFO(file.st_mode) ? "FIFO" : "socket");
	itself.id.file = identity_of(&file);
	fill_snapshot(snapshot, &itself, search);
	return 0;
}

int snapshot_take_object(struct snapshot *snapshot, const struct lock *lock, int object,
    struct search *search, struct error *error)
{
	struct stat file;

	*snapshot = (struct snapshot){0};
	if (object >= 0 && !identify(snapshot, object, &file))
		return error_set(error, ERROR_OPEN, "cannot examine it");
	fill_snapshot(snapshot, lock, search);
	return 0;
}
