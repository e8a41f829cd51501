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

/* ---- what a look costs ---- */

/* Limits of processor time.  Any user can name a process semlock and let it open files that take
 * long to look into: that must not delay the list of everybody else's locks. */
enum { MOST_OF_USER = 400, MOST_OF_ALL = 1500 /* ms, of users other than root and this one */ };

static bool is_free_of_charge(uid_t user)
{
	return user == 0 || user == getuid();
}

/* Returns NULL if USER's processes cost nothing, or without memory (then ALL->failed is set). */
static struct user_cost *cost_of(struct open_locks *all, uid_t user)
{
	struct user_cost *costs;

	if (is_free_of_charge(user))
		return NULL;
	for (size_t i = 0; i < all->ncosts; i++)
		if (all->costs[i].user == user)
			return &all->costs[i];
	costs = realloc(all->costs, (all->ncosts + 1) * sizeof *costs);
	if (costs == NULL) {
		all->failed = true;
		return NULL;
	}
	all->costs = costs;
	costs[all->ncosts] = (struct user_cost){.user = user};
	return &costs[all->ncosts++];
}

/* From now on, until charge_ends(), the time is charged to USER.  Returns false if the time of that
 * user, or of all users, is used up, or without memory. */
static bool charge_begins(struct open_locks *all, uid_t user)
{
	const int64_t left_of_all = MOST_OF_ALL * MILLISECOND - all->cost;
	int64_t left;

	all->charged = cost_of(all, user);
	if (all->charged == NULL)
		return !all->failed;
	left = MOST_OF_USER * MILLISECOND - all->charged->cost;
	if (left > left_of_all)
		left = left_of_all;
	if (left <= 0 || all->charged->cut) {
		all->charged->cut = true;
		all->charged = NULL;
		return false;
	}
	all->charged_from = clock_processor();
	all->limit = allowance_begins(left, deadline_never());
	return true;
}

static void charge_ends(struct open_locks *all)
{
	int64_t took;

	if (all->charged == NULL)
		return;
	took = clock_processor() - all->charged_from;
	all->charged->cost += took;
	all->cost += took;
	all->charged = NULL;
}

/* Has the user whose processes are looked into used up the time for that? */
static bool is_too_long(struct open_locks *all)
{
	if (all->charged != NULL && allowance_spent(&all->limit))
		all->charged->cut = true;
	return all->charged != NULL && all->charged->cut;
}

/* ---- the descriptors of a process ---- */

/* Two users have a lock open: is looking at it better charged to USER than to OTHER?  A user whose
 * time is used up must not hide another user's lock. */
static bool is_better_charged(struct open_locks *all, uid_t user, uid_t other)
{
	const struct user_cost *costs;
	int64_t cost = 0, others = 0;

	for (size_t i = 0; i < all->ncosts; i++) {
		costs = &all->costs[i];
		if (costs->user == user)
			cost = costs->cost;
		if (costs->user == other)
			others = costs->cost;
	}
	return !is_free_of_charge(other) && (is_free_of_charge(user) || cost < others);
}

static void add_lock(struct open_locks *all, const struct open_lock *lock)
{
	struct open_lock *list, added = *lock;

	added.user = all->user;
	for (size_t i = 0; i < all->count; i++) {
		if (lock->file.inode == 0 || !same_file(all->list[i].file, lock->file))
			continue;
		if (is_better_charged(all, added.user, all->list[i].user))
			all->list[i].user = added.user;
		return;
	}
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

	return open_fds_identify(AT_FDCWD, path, 0, &found) && same_file(found, *file);
}

/* The descriptors of a file that was made without a name (O_TMPFILE) call it DIRECTORY/#INODE
 * forever, even once it has a name: find that name in DIRECTORY. */
static bool find_given_name(struct open_locks *all, char path[PATH_MAX],
    const struct identity *file)
{
	char *slash = strrchr(path, '/');
	struct dirent *entry;
	DIR *directory;
	bool found = false;

	if (slash == NULL || slash[1] != '#')
		return false;
	*slash = '\0';
	directory = opendir(*path == '\0' ? "/" : path);
	while (directory != NULL && !found && !is_too_long(all) &&
	       (entry = readdir(directory)) != NULL) {
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

/* Process PID knows FILE as PATH.  In a container or a chroot, the same path means another file to
 * this process.  Replace PATH by a path that leads to FILE from here.  Returns false if none
 * does. */
static bool find_path(struct open_locks *all, pid_t pid, char path[PATH_MAX],
    const struct identity *file)
{
	char there[PATH_MAX];

	if (names(path, file))
		return true;
	if (snprintf(there, sizeof there, "/proc/%ld/root%s", (long)pid, path) >= (int)sizeof there)
		return false;
	if (!names(there, file)) {
		if (find_given_name(all, path, file))
			return true;
		if (!find_given_name(all, there, file))
			return false;
	}
	strcpy(path, there);
	return true;
}

/* Does descriptor FD of process PID carry a lock?  A posix lock does not count: any program may
 * have one on its data. */
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

/* Is ENTRY a symbolic link that is a lock, or does a queue exist for a lock of this name?  ENTRY is
 * in the directory FILE, of which DIRECTORY is an open descriptor. */
static bool is_lock_entry(int directory, const struct identity *file, const struct dirent *entry)
{
	const struct lock lock = {.id = {.file = *file, .entry = entry->d_name}};
	char target[RECORD_LIMIT], queue[QUEUE_PATH_SIZE];
	struct record record = {.kind = RECORD_JUNK};
	ssize_t length = -1;

	if (entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN)
		length = readlinkat(directory, entry->d_name, target, sizeof target);
	if (length > 0)
		record_read(&record, target, (size_t)length);
	queuefile_path(&lock, queue);
	return record.kind == RECORD_FULL || access(queue, F_OK) == 0;
}

/* Has FILE, a directory, been read for a process of this user? */
static bool was_read(const struct open_locks *all, const struct identity *file)
{
	for (size_t i = 0; i < all->nread; i++)
		if (all->read[i].user == all->user && same_file(all->read[i].directory, *file))
			return true;
	return false;
}

static void note_read(struct open_locks *all, const struct identity *file)
{
	struct directory_read *read = realloc(all->read, (all->nread + 1) * sizeof *read);

	if (read == NULL) {
		all->failed = true;
		return;
	}
	all->read = read;
	read[all->nread++] = (struct directory_read){*file, all->user};
}

/* Add the locks in the directory PATH, which a semlock has open.  No process need have a lock open
 * that is a symbolic link, or a lock file that another program made.  But a semlock that holds such
 * a link, or waits for such a link or file, has its directory open. */
static void add_entries(struct open_locks *all, const char *path, const struct identity *file)
{
	DIR *directory = was_read(all, file) ? NULL : opendir(path);
	struct open_lock lock = {0};
	char name[PATH_MAX];
	struct dirent *entry;

	if (directory != NULL)
		note_read(all, file);
	while (directory != NULL && !is_too_long(all) && (entry = readdir(directory)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    !is_lock_entry(dirfd(directory), file, entry) ||
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

/* Add the lock that descriptor FD of PID may be.  A rename lock's file is called LOCK.held while
 * the lock is held. */
static void add_fd(struct open_locks *all, pid_t pid, const char *fd, bool is_semlock,
    char path[PATH_MAX])
{
	struct open_lock lock = {.name = path};
	char link[64];
	size_t length;

	snprintf(link, sizeof link, "/proc/%ld/fd/%.16s", (long)pid, fd);
	if (!open_fds_identify(AT_FDCWD, link, 0, &lock.file))
		return;
	if (!find_path(all, pid, path, &lock.file)) {
		/* A locked file may have been deleted, or be in another mount namespace: then no
		 * path leads to it from here or from that process's root. */
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

/* Add the lock of HELPER.  The URL is the last argument of a helper. */
static void add_helper(struct open_locks *all, struct process *helper)
{
	struct open_lock lock = {0};

	for (size_t i = 0; i < helper->command_length; i += strlen(helper->command + i) + 1) {
		lock.name = helper->command + i;
		if (strcmp(lock.name, "--who") == 0)
			return;
	}
	lock.semlock = helper->parent;
	if (lock.name != NULL && server_method(lock.name) != NULL)
		add_lock(all, &lock);
}

/* Add the locks that PID has open.  PID: a process, or a thread that shows its process's
 * descriptors. */
static enum fds_shown add_fds(struct open_locks *all, pid_t pid, bool is_semlock)
{
	char directory[64], path[PATH_MAX];
	struct dirent *entry;
	bool any = false;
	ssize_t length;
	DIR *fds;

	snprintf(directory, sizeof directory, "/proc/%ld/fd", (long)pid);
	fds = opendir(directory);
	if (fds == NULL)
		return errno == EACCES || errno == EPERM ? FDS_REFUSED : FDS_SOME;
	while (!is_too_long(all) && (entry = readdir(fds)) != NULL) {
		length = readlinkat(dirfd(fds), entry->d_name, path, sizeof path - 1);
		any = any || length > 0;
		if (length <= 0 || path[0] != '/')
			continue;
		path[length] = '\0';
		if ((is_semlock && strtol(entry->d_name, NULL, 10) > STDERR_FILENO) ||
		    is_locked(pid, entry->d_name))
			add_fd(all, pid, entry->d_name, is_semlock, path);
	}
	closedir(fds);
	return any ? FDS_SOME : FDS_NONE;
}

static void add_all_fds(struct open_locks *all, pid_t pid, bool is_semlock)
{
	enum fds_shown shown = add_fds(all, pid, is_semlock);
	const pid_t thread = process_thread_with_files(pid, shown);

	if (thread != pid)
		shown = add_fds(all, thread, is_semlock);
	all->unseen = all->unseen || shown == FDS_REFUSED;
}

/* Charge the real user, who started the process: a setuid program only has another user's
 * rights. */
static bool see_process(pid_t pid, void *context)
{
	struct open_locks *all = context;
	struct process process;

	if (pid == getpid() || !process_read(pid, &process))
		return true;
	all->user = process.real_user;
	if (!charge_begins(all, process.real_user))
		return !all->failed;
	if (name_is_helper(process.name))
		add_helper(all, &process);
	else
		add_all_fds(all, pid, name_is_semlock(process.name));
	charge_ends(all);
	return !all->failed;
}

void open_locks_find(struct open_locks *all)
{
	/* with the mount option hidepid, /proc hides other users' processes */
	*all = (struct open_locks){.unseen = access("/proc/1", F_OK) != 0};
	process_each(see_process, all);
}

size_t open_locks_left_out(const struct open_locks *all, uid_t *user)
{
	size_t users = 0;

	for (size_t i = 0; i < all->ncosts; i++)
		if (all->costs[i].cut && users++ == 0)
			*user = all->costs[i].user;
	return users;
}

/* ---- their owners ---- */

static bool same_name(const struct open_locks *all, size_t i, size_t j)
{
	return strcmp(all->list[i].name, all->list[j].name) == 0;
}

/* Add the holders of lock I of ALL, which is on a server, then its waiters. */
static void see_on_server(struct owners *found, const struct open_locks *all, size_t i)
{
	for (int waits = 0; waits < 2; waits++)
		for (size_t j = i; j < all->count; j++)
			if (same_name(all, i, j))
				server_owners_see(found, all->list[i].name, all->list[j].semlock,
				    waits != 0);
}

bool open_locks_owners(struct owners *found, struct open_locks *all, size_t i,
    const struct method *method, struct search_terms *terms)
{
	struct open_lock *lock = &all->list[i];
	struct lock_spec spec = {.method = method, .name = lock->name, .fd = -1};
	struct error ignored;
	bool looked;

	*found = (struct owners){0};
	while (!fd_walk_go_on(terms->walk)) /* all locks share the walk: nobody is charged for it */
		;
	lock->left_out = !charge_begins(all, lock->user);
	if (lock->left_out)
		return false;
	for (size_t j = 0; j < i; j++)
		if (!all->list[j].left_out && same_name(all, i, j))
			return false;
	if (server_method(spec.name) == NULL) {
		terms->budget = all->charged == NULL ? 0 : all->limit.budget;
		looked = owners_look_by_name(found, &spec, false, terms, &ignored) == 0;
		terms->budget = 0;
		return looked;
	}
	see_on_server(found, all, i);
	return true;
}

void open_locks_looked(struct open_locks *all)
{
	charge_ends(all);
}
