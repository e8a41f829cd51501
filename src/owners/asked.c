/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/options.h"
#include "cli/user_lock.h"
#include "methods/server/locksmith.h"
#include "methods/server/server.h"
#include "owners/asked.h"

/* The command line of a semlock process. */
struct words {
	pid_t pid;
	int argc;
	char *argv[LOCK_OPTIONS_WORDS + 1];
	char line[65536];
	struct lock_options lock;
};

static bool link_text(pid_t pid, const char *what, char *text)
{
	char path[64];
	ssize_t length;

	snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, what);
	length = readlink(path, text, PATH_MAX - 1);
	text[length > 0 ? length : 0] = '\0';
	return length > 0;
}

static void identify(struct asked *asked, const char *name)
{
	struct stat status;

	if (stat(name, &status) == 0 || lstat(name, &status) == 0) /* of -m symlink, only the link is there */
		asked->file = (struct identity){status.st_dev, status.st_ino};
}

/* Put into PATH what leads to a descriptor of process PID, and ends in END.  Returns false if none does. */
static bool find_open(pid_t pid, const char *end, char *path)
{
	size_t length = strlen(end), found;
	char descriptor[16];

	for (int fd = 3; fd < 64; fd++) {
		snprintf(descriptor, sizeof descriptor, "fd/%d", fd);
		found = link_text(pid, descriptor, path) ? strlen(path) : 0;
		if (found >= length && strcmp(path + found - length, end) == 0)
			return true;
	}
	return false;
}

/* In a container or a chroot, the process means another file than this process does. */
static bool find_file(struct asked *asked)
{
	struct asked there = *asked;

	if (asprintf(&there.name, "/proc/%ld/root%s", (long)asked->pid, asked->name) < 0)
		return false;
	identify(&there, there.name);
	identify(asked, asked->name);
	if (there.file.inode == 0 || same_file(&there.file, &asked->file)) {
		free(there.name);
		return true;
	}
	free(asked->name);
	*asked = there;
	return true;
}

static void add_lock(struct all_asked *all, const struct words *words, const char *name)
{
	char directory[PATH_MAX] = "";
	bool server = server_method(name) != NULL, relative = *name != '/' && !server;
	struct asked *list = realloc(all->list, (all->count + 1) * sizeof *list);
	struct asked asked = {
	    .method = words->lock.method,
	    .method_named = words->lock.method_named,
	    .pid = words->pid,
	};

	if (list != NULL)
		all->list = list;
	if (relative && !link_text(words->pid, "cwd", directory)) {
		all->unseen = true;
		return;
	}
	if (list == NULL || asprintf(&asked.name, "%s%s%s", strcmp(directory, "/") == 0 ? "" : directory,
				relative ? "/" : "", name) < 0 ||
	    (!server && !find_file(&asked))) {
		all->failed = true;
		return;
	}
	list[all->count++] = asked;
}

static void read_words(struct words *words, pid_t pid)
{
	char path[64];
	ssize_t length;

	words->pid = pid;
	words->argc = 0;
	snprintf(path, sizeof path, "/proc/%ld/cmdline", (long)pid);
	length = process_file(path, words->line, sizeof words->line);
	for (ssize_t at = 0; at < length && words->argc < LOCK_OPTIONS_WORDS;
	     at += (ssize_t)strlen(words->line + at) + 1)
		words->argv[words->argc++] = words->line + at;
	words->argv[words->argc] = NULL;
}

static bool add_locks(struct all_asked *all, struct words *words)
{
	const struct lock_options *lock = &words->lock;
	const char *first;
	char *path_of_name = NULL, descriptor[32], end[256], path[PATH_MAX];
	struct error ignored;

	if (words->argc < 2 || !lock_options_read(&words->lock, words->argc, words->argv))
		return true;
	if (lock->name != NULL) {
		/* The directory of another user, or of another session, is not known: the lock is open there. */
		snprintf(end, sizeof end, "/%s", lock->name);
		first = path;
		if (!find_open(words->pid, end, path) || strstr(path, "/semlock") == NULL)
			first = path_of_name = user_lock_path(lock->name, false, &ignored);
	} else if (lock->fd != NULL) {
		snprintf(descriptor, sizeof descriptor, "fd/%.8s", lock->fd);
		first = link_text(words->pid, descriptor, path) ? path : NULL;
		all->unseen = all->unseen || first == NULL;
	} else {
		first = lock->operand;
	}
	if (first != NULL)
		add_lock(all, words, first);
	free(path_of_name);
	for (size_t i = 0; i < lock->nmore && !all->failed; i++)
		add_lock(all, words, lock->more[i]);
	return !all->failed;
}

static bool see_process(pid_t pid, void *context)
{
	static struct words words;
	char path[64], name[32];

	snprintf(path, sizeof path, "/proc/%ld/comm", (long)pid);
	if (process_file(path, name, sizeof name) < 0 || strcmp(name, "semlock\n") != 0 || pid == getpid())
		return true;
	read_words(&words, pid);
	return add_locks(context, &words);
}

void asked_find(struct all_asked *all)
{
	*all = (struct all_asked){.unseen = access("/proc/1", F_OK) != 0}; /* hidepid */
	process_each(see_process, all);
}

struct children {
	pid_t parent;
	pid_t helper, other; /* the locksmith, and any other child; 0: none */
};

static bool see_child(pid_t pid, void *context)
{
	struct children *children = context;
	struct procfs_stat stat;

	if (!process_stat(pid, &stat) || stat.parent != children->parent || procfs_ended(stat.state))
		return true;
	if (strncmp(stat.name, LOCKSMITH_PREFIX, 15) == 0) /* the kernel cuts names */
		children->helper = pid;
	else
		children->other = pid;
	return true;
}

static void add_run(struct owners *found, const struct asked *asked, const struct children *children, bool waits)
{
	struct owner *one = owners_add(found);

	if (one == NULL)
		return;
	one->waits = waits;
	one->method = server_method(asked->name)->name;
	process_read(children->other > 0 ? children->other : asked->pid, &one->process);
	one->supervisor = children->other > 0 ? asked->pid : 0;
	one->since = process_start(one->process.started);
	one->since_exact = true;
	found->holders += !waits;
}

/* A run may be several semlock processes (a relay, --hold): the one whose child is the helper counts.  While a
 * lock is held, its lease has a timer, also after the command has ended (--min-hold). */
void asked_of_server(const struct all_asked *all, size_t i, struct owners *found)
{
	const char *name = all->list[i].name;
	struct children children;
	char path[PATH_MAX];
	bool holds;

	*found = (struct owners){0};
	for (int waits = 0; waits < 2; waits++)
		for (size_t j = i; j < all->count; j++) {
			children = (struct children){.parent = all->list[j].pid};
			if (strcmp(all->list[j].name, name) == 0)
				process_children(all->list[j].pid, see_child, &children);
			holds = children.other > 0 || find_open(all->list[j].pid, "anon_inode:[timerfd]", path);
			if (children.helper > 0 && holds == (waits == 0))
				add_run(found, &all->list[j], &children, waits != 0);
		}
	found->unseen = found->holders == 0; /* on another machine */
}
