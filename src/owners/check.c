#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lock/attempt.h"
#include "lock/limits.h"
#include "sys/lock_scope.h"
#include "lock/take.h"
#include "methods/server/locksmith.h"
#include "methods/server/server.h"
#include "owners/owners.h"
#include "owners/who.h"
#include "report/error.h"
#include "report/exitcode.h"
#include "sys/crash_points.h"
#include "sys/file_system.h"
#include "sys/path.h"
#include "sys/signals.h"
#include "sys/start_barrier.h"

/* Two living processes, for locks made of files, which record a PID: this one, and one at a start
 * barrier. */
static struct child children[2];

struct place {
	const char *name;
	char scratch[PATH_MAX]; /* a new file on the same file system */
	bool is_a_name; /* the lock is made of files: a name, never followed */
	bool is_directory;
	bool on_network;   /* see limits_of_network() */
	bool mounted;      /* MOUNT is known */
	struct procfs_mount mount;
};

/* The lock's directory, symbolic links followed; the lock itself, if it is a directory. */
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
	place->mounted = file_system_mount(fd, &place->mount);
	place->on_network = limits_of_network(&(struct lock){.fd = fd});
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

/* Take one lock by two open file descriptions: the second must be busy until the first drops it. */
static bool excludes(const struct method *first, const struct method *second, const char *path,
    struct error *error)
{
	struct lock pair[2];
	bool busy = false, taken = false;

	error_say(error, ERROR_UNAVAILABLE, "two at the same time");
	if (open_pair(pair, first, second, path, error) &&
	    attempt_try(&pair[0], error) == TAKEN) {
		if (FAULT_POINT("check.lost"))
			attempt_drop(&pair[0]);
		busy = attempt_try(&pair[1], error) == BUSY;
		CRASH_POINT("check.tried");
		attempt_drop(&pair[0]);
		taken = busy && attempt_try(&pair[1], error) == TAKEN;
	}
	lock_forget(&pair[0]);
	lock_forget(&pair[1]);
	return busy && taken;
}

static enum lock_scope lock_scope(const struct place *place, const struct method *method)
{
	struct lock lock = {.method = method};

	if (!place->mounted)
		return SCOPE_UNKNOWN;
	if (method->file != NULL)
		return lock_scope_of_names(&place->mount);
	return lock_scope_of(&place->mount, owners_kinds(&lock) == KIND_FLOCK ? KIND_FLOCK : KIND_POSIX);
}

/* What SCOPE leaves out.  The server of NFS keeps a flock as a record lock, beside the flocks of its own programs. */
static const char *exception(const struct place *place, const struct method *method, enum lock_scope scope)
{
	if (scope != SCOPE_EVERYWHERE)
		return "";
	if (method->file != NULL)
		return "; a dead holder on another machine is recognised with --stale only";
	return strncmp(place->mount.type, "nfs", 3) == 0 && (method->can & CAN_RANGE) == 0
		   ? "; but no flock on the server's own disk: use -m ofd with programs there" : "";
}

/* Print the result for METHOD, which excludes here.  Returns false if it does so on this machine alone,
 * and the file system is shared. */
static bool print_scope(const struct place *place, const struct method *method)
{
	static const char *const words[] = {
	    "excludes",
	    "excludes, other machines as well",
	    "excludes on this machine only: as this is mounted, others do not see it",
	    "excludes on this machine; whether others see it is not known",
	};
	enum lock_scope scope = lock_scope(place, method);

	printf("%-8s %s%s\n", method->name, words[scope], exception(place, method, scope));
	return scope != SCOPE_HERE_ONLY;
}

/* A kernel lock is tried on the scratch file; a lock made of files under a new name beside it, which the release
 * removes, but for rename's token.  A posix lock does not exclude its own process: the second lock is then an
 * OFD lock, which it excludes. */
static bool try_method(const struct place *place, const struct method *method)
{
	const struct method *second = (method->can & OWNED_BY_PROCESS) != 0 ? method_named("ofd") : method;
	char name[PATH_MAX + 8];
	struct error error;
	bool good;

	if (place->is_directory && (method->can & CAN_RANGE) != 0) {
		printf("%-8s cannot lock a directory\n", method->name);
		return false;
	}
	if (method->kernel != NULL && place->is_directory && place->on_network) {
		printf("%-8s cannot lock a directory for other machines\n", method->name);
		return false;
	}
	snprintf(name, sizeof name, "%s%s", place->scratch, method->file != NULL ? ".lock" : "");
	good = excludes(method, second, name, &error);
	if ((method->can & NEEDS_INIT) != 0)
		unlink(name);
	if (good)
		return print_scope(place, method);
	print_line("%-8s does not exclude: %s", method->name, error.text);
	return false;
}

/* Try all methods, or the one of -m.  Returns whether that, or the default, excludes here. */
static bool try_methods(const struct place *place, const struct request *request)
{
	const struct method *method;
	bool good = false, excluding;

	for (unsigned n = 0; (method = method_nth(n)) != NULL; n++) {
		if (method->server != NULL ||
		    (request->method_named && method != request->lock.method))
			continue;
		excluding = try_method(place, method);
		good = good || (method == request->lock.method && excluding);
	}
	return good;
}

static void hear_check(const char *line, void *context)
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
	struct lock lock = {.method = request->lock.method, .name = request->locks[0].name};
	bool good = true;
	struct error error;

	if (server_ask(&lock, "--check", hear_check, &good, &error) != 0) {
		complain("%s: %s", lock.name, error.text);
		return exit_status_of(error.kind);
	}
	end_output(good ? EXIT_SUCCESS : EXIT_UNAVAILABLE);
}

int check(const struct request *request)
{
	struct place place = {
	    .name = request->locks[0].name,
	    .is_a_name = request->method_named && request->lock.method->file != NULL,
	};
	struct start_barrier barrier = {0};
	sigset_t mask, before;
	struct error error;
	bool good;

	if (request->lock.method->server != NULL)
		return check_server(request);
	signals_block_all(&before); /* an interrupted check would leave its files behind */
	if (make_scratch(&place, &error) != 0) {
		complain("%s: %s", place.name, error.text);
		return exit_status_of(error.kind);
	}
	children[0].pid = getpid();
	children[1].pid = start_barrier_start(&barrier, &mask);
	if (children[1].pid == 0)
		start_barrier_fail(&barrier, 0);
	if (place.mounted)
		print_line("on       %s (%s, mounted at %s)", place.mount.type, place.mount.source,
		    place.mount.point);
	good = children[1].pid > 0 && try_methods(&place, request);
	unlink(place.scratch);
	start_barrier_cancel(&barrier);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (children[1].pid < 0)
		die(EXIT_SYSTEM, "cannot start a process");
	end_output(good ? EXIT_SUCCESS : EXIT_UNAVAILABLE);
}
