/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lock/queue.h"
#include "methods/file/owner_record.h"
#include "methods/server/locksmith.h"
#include "methods/server/scheme.h"
#include "owners/sources.h"

#define QUEUES QUEUE_DIRECTORY "/semlock-"

/* ---- the descriptors of a process ---- */

static void add_lock(struct open_locks *all, const struct open_lock *lock)
{
	struct open_lock *list, added = *lock;

	for (size_t i = 0; i < all->count; i++)
		if (lock->file.inode != 0 && same_file(&all->list[i].file, &lock->file))
			return;
	list = realloc(all->list, (all->count + 1) * sizeof *list);
	if (list != NULL)
		all->list = list;
	added.name = list == NULL ? NULL : strdup(lock->name);
	if (added.name == NULL)
		all->failed = true;
	else
		all->list[all->count++] = added;
}

static bool names(const char *path, const struct identity *file)
{
	struct identity found;

	return open_fds_identify(AT_FDCWD, path, 0, &found) && same_file(&found, file);
}

/* A file that was made without a name (O_TMPFILE) is called DIRECTORY/#INODE by its descriptors for
 * ever: find its name in that directory. */
static bool find_given_name(char path[PATH_MAX], const struct identity *file)
{
	char *slash = strrchr(path, '/');
	struct dirent *entry;
	DIR *directory;
	bool found = false;

	if (slash == NULL || slash[1] != '#')
		return false;
	*slash = '\0';
	directory = opendir(*path == '\0' ? "/" : path);
	while (directory != NULL && !found && (entry = readdir(directory)) != NULL) {
		if (entry->d_ino != file->inode ||
		    (size_t)(slash - path) + strlen(entry->d_name) + 2 > PATH_MAX)
			continue;
		*slash = '/';
		strcpy(slash + 1, entry->d_name);
		found = names(path, file);
	}
	if (directory != NULL)
		closedir(directory);
	return found;
}

/* Make PATH, by which process PID knows FILE, one that leads there from here: in a container or a
 * chroot that process means another file than this one does.  Returns false if none does. */
static bool find_path(pid_t pid, char path[PATH_MAX], const struct identity *file)
{
	char there[PATH_MAX];

	if (names(path, file))
		return true;
	if (snprintf(there, sizeof there, "/proc/%ld/root%s", (long)pid, path) >= (int)sizeof there)
		return false;
	if (!names(there, file)) {
		if (find_given_name(path, file))
			return true;
		if (!find_given_name(there, file))
			return false;
	}
	strcpy(path, there);
	return true;
}

/* Has descriptor FD of process PID a lock on it?  A posix lock may be any program's, and does not
 * count. */
static bool is_locked(pid_t pid, const char *fd)
{
	char path[64], text[8192], *rest = text, *line;
	struct procfs_lock lock;

	snprintf(path, sizeof path, "/proc/%ld/fdinfo/%.16s", (long)pid, fd);
	if (process_file(path, text, sizeof text) < 0)
		return false;
	while ((line = strsep(&rest, "\n")) != NULL)
		if (procfs_lock_line(line, &lock) && lock.kind != KIND_POSIX)
			return true;
	return false;
}

/* Is ENTRY of the open DIRECTORY, which is FILE, a lock that is a symbolic link; or does a queue
 * wait for a lock of this name? */
static bool is_lock_entry(int directory, const struct identity *file, const char *entry)
{
	const struct lock lock = {
	    .id = {.device = file->device, .inode = file->inode, .entry = entry}};
	char target[RECORD_LIMIT], queue[QUEUE_PATH_SIZE];
	ssize_t length = readlinkat(directory, entry, target, sizeof target);
	struct record record = {.kind = RECORD_JUNK};

	if (length > 0)
		record_read(&record, target, (size_t)length);
	queuefile_path(&lock, queue);
	return record.kind == RECORD_FULL || access(queue, F_OK) == 0;
}

/* A lock that is a symbolic link has no descriptor, nor has one of another program's making: a
 * semlock that holds it, or waits for it, has the directory PATH open. */
static void add_entries(struct open_locks *all, const char *path, const struct identity *file)
{
	DIR *directory = opendir(path);
	struct open_lock lock = {0};
	char name[PATH_MAX];
	struct dirent *entry;

	while (directory != NULL && (entry = readdir(directory)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    !is_lock_entry(dirfd(directory), file, entry->d_name) ||
		    snprintf(name, sizeof name, "%s/%s", strcmp(path, "/") == 0 ? "" : path,
			entry->d_name) >= PATH_MAX)
			continue;
		lock.name = name;
		if (open_fds_identify(AT_FDCWD, name, AT_SYMLINK_NOFOLLOW, &lock.file))
			add_lock(all, &lock);
	}
	if (directory != NULL)
		closedir(directory);
}

/* The file of a rename lock is called LOCK.held while the lock is held. */
static void add_fd(struct open_locks *all, pid_t pid, const char *fd, bool is_semlock,
    char path[PATH_MAX])
{
	struct open_lock lock = {.name = path};
	char link[64];
	size_t length;

	snprintf(link, sizeof link, "/proc/%ld/fd/%.16s", (long)pid, fd);
	if (!open_fds_identify(AT_FDCWD, link, 0, &lock.file))
		return;
	if (!find_path(pid, path, &lock.file)) {
		/* A locked file may have been deleted, or be in another mount namespace, where no
		 * path leads from here, or from that process's root. */
		if (!is_locked(pid, fd))
			return;
		strcpy(path, link);
	}
	if (strstr(path, QUEUES) != NULL)
		return;
	if (is_semlock)
		add_entries(all, path, &lock.file);
	length = strlen(path);
	if (length > 5 && strcmp(path + length - 5, ".held") == 0)
		path[length - 5] = '\0';
	add_lock(all, &lock);
}

/* ---- the processes ---- */

/* The URL is the last argument of a helper. */
static void add_helper(struct open_locks *all, pid_t pid)
{
	struct process helper;
	struct open_lock lock = {0};

	if (!process_read(pid, &helper))
		return;
	for (size_t i = 0; i < helper.command_length; i += strlen(helper.command + i) + 1) {
		lock.name = helper.command + i;
		if (strcmp(lock.name, "--who") == 0)
			return;
	}
	lock.semlock = helper.parent;
	if (lock.name != NULL && server_method(lock.name) != NULL)
		add_lock(all, &lock);
}

static bool see_process(pid_t pid, void *context)
{
	struct open_locks *all = context;
	char comm[64], name[32], path[PATH_MAX];
	struct dirent *entry;
	bool is_semlock;
	ssize_t length;
	DIR *fds;

	snprintf(comm, sizeof comm, "/proc/%ld/comm", (long)pid);
	if (pid == getpid() || process_file(comm, name, sizeof name) < 0)
		return true;
	is_semlock = strcmp(name, "semlock\n") == 0;
	if (strncmp(name, LOCKSMITH_PREFIX, 15) == 0) { /* the kernel cuts names */
		add_helper(all, pid);
		return !all->failed;
	}
	snprintf(comm, sizeof comm, "/proc/%ld/fd", (long)pid);
	fds = opendir(comm);
	if (fds == NULL)
		all->unseen = all->unseen || errno == EACCES || errno == EPERM;
	while (fds != NULL && (entry = readdir(fds)) != NULL) {
		length = readlinkat(dirfd(fds), entry->d_name, path, sizeof path - 1);
		if (length <= 0 || path[0] != '/')
			continue;
		path[length] = '\0';
		if ((is_semlock && strtol(entry->d_name, NULL, 10) > STDERR_FILENO) ||
		    is_locked(pid, entry->d_name))
			add_fd(all, pid, entry->d_name, is_semlock, path);
	}
	if (fds != NULL)
		closedir(fds);
	return !all->failed;
}

void open_locks_find(struct open_locks *all)
{
	*all = (struct open_locks){.unseen = access("/proc/1", F_OK) != 0}; /* hidepid */
	process_each(see_process, all);
}

/* ---- their owners ---- */

static bool same_name(const struct open_locks *all, size_t i, size_t j)
{
	return strcmp(all->list[i].name, all->list[j].name) == 0;
}

/* The holders of the lock on a server that is I of ALL, then its waiters. */
static void see_on_server(struct owners *found, const struct open_locks *all, size_t i)
{
	for (int waits = 0; waits < 2; waits++)
		for (size_t j = i; j < all->count; j++)
			if (same_name(all, i, j))
				server_owners_see(found, all->list[i].name, all->list[j].semlock,
				    waits != 0);
}

bool open_locks_owners(struct owners *found, const struct open_locks *all, size_t i,
    const struct method *method, struct search_terms *terms)
{
	struct lock_spec spec = {.method = method, .name = all->list[i].name, .fd = -1};
	struct error ignored;

	*found = (struct owners){0};
	for (size_t j = 0; j < i; j++)
		if (same_name(all, i, j))
			return false;
	if (server_method(spec.name) == NULL)
		return owners_look_by_name(found, &spec, false, terms, &ignored) == 0;
	see_on_server(found, all, i);
	return true;
}
