#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "owners/check.h"
#include "lock/take.h"
#include "sys/crash_points.h"
#include "report/exitcode.h"
#include "sys/start_barrier.h"
#include "methods/server/locksmith.h"
#include "methods/server/server.h"
#include "sys/mounts.h"
#include "owners/owners.h"
#include "sys/path.h"
#include "owners/lock_scope.h"
#include "report/error.h"

/* Two who are alive: with a lock made of files, each is to find the other by its number.  The
 * first is ourselves, the second stands at a gate. */
static struct child children[2];

struct place {
	const char *name;
	char scratch[PATH_MAX]; /* a file of ours on the same file system */
	bool is_a_name; /* the lock is no file, but a name in its directory */
	bool is_directory;
	bool mounted; /* MOUNT is known */
	struct procfs_mount mount;
};

/* The directory that the lock is in, links followed; the lock itself if it is one.  What is made
 * of files is never followed, and a directory there could be somebody's lock. */
static const char *find_directory(struct place *place, char path[PATH_MAX], char space[PATH_MAX])
{
	struct stat file = {0};

	errno = ENAMETOOLONG;
	if (strlen(place->name) >= PATH_MAX)
		return NULL;
	strcpy(path, place->name);
	if (!place->is_a_name && lstat(place->name, &file) == 0 && S_ISLNK(file.st_mode) &&
	    (realpath(place->name, path) == NULL || stat(path, &file) != 0))
		return NULL;
	place->is_directory = S_ISDIR(file.st_mode);
	return place->is_directory ? path : path_directory(path, space);
}

static int make_scratch(struct place *place, struct error *error)
{
	char path[PATH_MAX], space[PATH_MAX];
	const char *directory = find_directory(place, path, space);
	int fd;

	if (directory == NULL)
		return error_set(error, ERROR_OPEN, "cannot look at it");
	if ((size_t)snprintf(place->scratch, sizeof place->scratch, "%s/.semlock-check-XXXXXX",
		directory) >= sizeof place->scratch) {
		errno = ENAMETOOLONG;
		return error_set(error, ERROR_OPEN, "cannot look at it");
	}
	fd = mkstemp(place->scratch);
	if (fd < 0)
		return error_set(error, errno == ENOENT || errno == ENOTDIR ? ERROR_OPEN : ERROR_CREATE,
		    "cannot try: cannot make a file beside it");
	place->mounted = mounts_find(fd, &place->mount);
	close(fd);
	return 0;
}

static bool open_pair(struct lock pair[2], const struct method *first,
    const struct method *second, const char *path, struct error *error)
{
	for (int i = 0; i < 2; i++)
		pair[i] = (struct lock){
		    .method = i == 0 ? first : second,
		    .name = path,
		    .mode = EXCLUSIVE,
		    .access = O_RDWR,
		    .create_mode = 0600,
		    .init = (first->can & NEEDS_INIT) != 0,
		    .child = &children[i],
		    .fd = -1,
		    .slot = -1,
		};
	return lock_open(&pair[0], error) == 0 && lock_open(&pair[1], error) == 0;
}

/* Two descriptions of one file: the second must be kept out as long as the first is in, and
 * let in after that. */
static bool excludes(const struct method *first, const struct method *second, const char *path,
    struct error *error)
{
	struct lock pair[2];
	bool kept_out = false, let_in = false;

	error_say(error, ERROR_UNAVAILABLE, "two at the same time");
	if (open_pair(pair, first, second, path, error) &&
	    first->take(&pair[0], TRY, error) == TAKEN) {
		if (FAULT_POINT("check.lost"))
			first->drop(&pair[0], error);
		kept_out = second->take(&pair[1], TRY, error) == BUSY;
		CRASH_POINT("check.tried");
		if (kept_out && first->drop(&pair[0], error) == 0)
			let_in = second->take(&pair[1], TRY, error) == TAKEN;
	}
	lock_forget(&pair[0]);
	lock_forget(&pair[1]);
	return kept_out && let_in;
}

static enum lock_scope lock_scope(const struct place *place, const struct method *method)
{
	struct lock lock = {.method = method};

	if (!place->mounted)
		return SCOPE_UNKNOWN;
	if ((method->can & LEAVES_RECORD) != 0)
		return lock_scope_of_names(&place->mount);
	return lock_scope_of(&place->mount, owners_kinds(&lock) == KIND_FLOCK ? KIND_FLOCK : KIND_POSIX);
}

/* Print what is to be said of METHOD, which excludes here. */
static bool tell_good(const struct place *place, const struct method *method)
{
	static const char *const words[] = {
	    "excludes",
	    "excludes, other machines as well",
	    "excludes on this machine only: as this is mounted, others do not see it",
	    "excludes on this machine; whether others see it is not known",
	};
	enum lock_scope far = lock_scope(place, method);
	bool needs_stale = far == SCOPE_EVERYWHERE && (method->can & LEAVES_RECORD) != 0;

	printf("%-8s %s%s\n", method->name, words[far],
	    needs_stale ? "; their dead are known by --stale alone" : "");
	return far != SCOPE_HERE_ONLY;
}

/* A process's own locks do not exclude the process itself: for those, the second lock is one of
 * another kind that must be kept out, too. */
static bool try_kernel_lock(const struct place *place, const struct method *method)
{
	const struct method *second = method;
	struct error error;

	if (place->is_directory && (method->can & CAN_RANGE) != 0) {
		printf("%-8s cannot lock a directory\n", method->name);
		return false;
	}
	if ((method->can & OWNED_BY_PROCESS) != 0)
		second = method_named("ofd");
	if (excludes(method, second, place->scratch, &error))
		return tell_good(place, method);
	print_line("%-8s does not exclude: %s", method->name, error.text);
	return false;
}

/* A name beside the scratch file, which nobody has yet, and which is gone again afterwards: but
 * for the token. */
static bool try_names(const struct place *place, const struct method *method)
{
	char name[PATH_MAX + 8];
	struct error error;
	bool good;

	snprintf(name, sizeof name, "%s.lock", place->scratch);
	good = excludes(method, method, name, &error);
	if ((method->can & NEEDS_INIT) != 0)
		unlink(name);
	if (good)
		return tell_good(place, method);
	print_line("%-8s does not exclude: %s", method->name, error.text);
	return false;
}

static bool try_method(const struct place *place, const struct method *method)
{
	return (method->can & LEAVES_RECORD) != 0 ? try_names(place, method)
						  : try_kernel_lock(place, method);
}

/* All of them, or the one that was asked for.  Returns whether that one, or the default, is
 * good here. */
static bool try_methods(const struct place *place, const struct request *request)
{
	const struct method *method;
	bool good = false, this_one;

	for (unsigned n = 0; (method = method_nth(n)) != NULL; n++) {
		if ((method->can & ON_SERVER) != 0 ||
		    (request->method_named && method != request->method))
			continue;
		this_one = try_method(place, method);
		good = good || (method == request->method && this_one);
	}
	return good;
}

/* What semlock-locksmith(7) has tried there, in its own words. */
static void hear(const char *line, void *context)
{
	bool *good = context;
	const char *text;

	if ((text = locksmith_says(line, "CHECK ok")) != NULL)
		print_line("yes      %s", text);
	else if ((text = locksmith_says(line, "CHECK note")) != NULL)
		print_line("note     %s", text);
	else if ((text = locksmith_says(line, "CHECK no")) != NULL)
		print_line("NO       %s", text);
	*good = *good && locksmith_says(line, "CHECK no") == NULL;
}

static int check_server(const struct request *request)
{
	struct lock lock = {.method = request->method, .name = request->locks[0].name};
	bool good = true;
	struct error error;

	if (server_ask(&lock, "--check", hear, &good, &error) != 0) {
		complain("%s: %s", lock.name, error.text);
		return exit_status_of(error.kind);
	}
	if (fflush(stdout) != 0 || ferror(stdout))
		die(EXIT_SYSTEM, "cannot write to standard output");
	return good ? EXIT_SUCCESS : EXIT_UNAVAILABLE;
}

int check(const struct request *request)
{
	struct place place = {
	    .name = request->locks[0].name,
	    .is_a_name = request->method_named && (request->method->can & LEAVES_RECORD) != 0,
	};
	struct start_barrier start_barrier = {0};
	sigset_t mask, all, before;
	struct error error;
	bool good;

	if ((request->method->can & ON_SERVER) != 0)
		return check_server(request);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before); /* who is ended in between leaves its files behind */
	if (make_scratch(&place, &error) != 0) {
		complain("%s: %s", place.name, error.text);
		return exit_status_of(error.kind);
	}
	children[0].pid = getpid();
	children[1].pid = start_barrier_start(&start_barrier, &mask);
	if (children[1].pid == 0)
		start_barrier_fail(&start_barrier, 0);
	if (place.mounted)
		print_line("on       %s (%s, mounted at %s)", place.mount.type, place.mount.source,
		    place.mount.point);
	good = children[1].pid > 0 && try_methods(&place, request);
	unlink(place.scratch);
	start_barrier_cancel(&start_barrier);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (children[1].pid < 0)
		die(EXIT_SYSTEM, "cannot start a process");
	if (fflush(stdout) != 0 || ferror(stdout))
		die(EXIT_SYSTEM, "cannot write to standard output");
	return good ? EXIT_SUCCESS : EXIT_UNAVAILABLE;
}
