#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "methods/kernel/lockfile.h"
#include "sys/lock_scope.h"
#include "lock/attempt.h"
#include "lock/take.h"
#include "methods/file/lockdir.h"
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
	char scratch[PATH_MAX + 32]; /* a new file on the same file system */
	bool is_a_name; /* the lock is made of files: a name, never followed */
	mode_t type; /* of the lock itself; 0: not there */
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
	place->type = file.st_mode & S_IFMT;
	return S_ISDIR(place->type) ? path : path_directory(path, space);
}

static int make_scratch(struct place *place, struct error *error)
{
	char path[PATH_MAX], space[PATH_MAX];
	const char *directory = find_directory(place, path, space);
	int fd;

	if (directory == NULL)
		return error_set(error, ERROR_OPEN, "cannot look at it");
	snprintf(place->scratch, sizeof place->scratch, "%s/.semlock-check-XXXXXX", directory);
	fd = mkstemp(place->scratch);
	if (fd < 0)
		return lockdir_failed(error, errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG ? ERROR_OPEN
											: ERROR_CREATE,
		    "cannot try: cannot make a file beside it");
	place->mounted = file_system_mount(fd, &place->mount);
	place->on_network = limits_of_network(&(struct lock){.fd = fd});
	close(fd);
	return 0;
}

static bool open_pair(struct lock pair[2], const struct method *first,
    const struct method *second, const char *path, struct error *error)
{
	static struct lock_spec specs[2];

	for (int i = 0; i < 2; i++) {
		specs[i] = (struct lock_spec){
		    .method = i == 0 ? first : second,
		    .name = path,
		    .fd = -1,
		    .mode = EXCLUSIVE,
		    .create_mode = 0600,
		    .init = (first->can & NEEDS_INIT) != 0,
		};
		pair[i] = LOCK_OF(&specs[i]);
		pair[i].child = &children[i];
		pair[i].access = O_RDWR;
	}
	return lock_open(&pair[0], error) == 0 && lock_open(&pair[1], error) == 0;
}

/* Did ERROR's call not fail for what this file system can do, but for what there is at the moment: a full disk, say? */
static bool is_passing(const struct error *error)
{
	return error->errnum != 0 && error->errnum != EINVAL && error->errnum != ENOSYS &&
	       error->errnum != EOPNOTSUPP && error->errnum != EPERM;
}

/* Take one lock by two open file descriptions: the second must be busy until the first drops it.  Returns the exit
 * status; unless that is 0, ERROR says why. */
static int try_pair(const struct method *first, const struct method *second, const char *path, struct error *error)
{
	struct lock pair[2];
	enum outcome outcome = FAILED;
	bool busy = false;

	if (open_pair(pair, first, second, path, error))
		outcome = attempt_try(&pair[0], error);
	if (outcome == TAKEN) {
		if (FAULT_POINT("check.lost"))
			attempt_drop(&pair[0]);
		outcome = attempt_try(&pair[1], error);
		busy = outcome == BUSY;
		CRASH_POINT("check.tried");
		attempt_drop(&pair[0]);
		if (busy)
			outcome = attempt_try(&pair[1], error);
	}
	first->release(&pair[0]);
	second->release(&pair[1]);
	if (outcome == FAILED)
		return is_passing(error) ? exit_status_of(error->kind) : EXIT_UNAVAILABLE;
	error_say(error, ERROR_UNAVAILABLE, busy ? "still held after its release" : "two at the same time");
	return busy && outcome == TAKEN ? EXIT_SUCCESS : EXIT_UNAVAILABLE;
}

static enum lock_scope lock_scope(const struct place *place, const struct method *method)
{
	const struct lock_spec spec = {.method = method};
	const struct lock lock = {.spec = &spec};

	if (!place->mounted)
		return SCOPE_UNKNOWN;
	if ((method->can & LEAVES_RECORD) != 0)
		return lock_scope_of_names(&place->mount);
	return lock_scope_of(&place->mount, owners_kinds(&lock) == KIND_FLOCK ? KIND_FLOCK : KIND_POSIX);
}

/* What SCOPE leaves out.  The server of NFS keeps a flock as a record lock, beside the flocks of its own programs. */
static const char *exception(const struct place *place, const struct method *method, enum lock_scope scope)
{
	if (scope != SCOPE_EVERYWHERE)
		return "";
	if ((method->can & LEAVES_RECORD) != 0)
		return "; a dead holder on another machine is recognised with --stale only";
	return strncmp(place->mount.type, "nfs", 3) == 0 && (method->can & CAN_RANGE) == 0
		   ? "; but no flock on the server's own disk: use -m ofd with programs there" : "";
}

/* Print the result for METHOD, which excludes here.  Returns the exit status: 69 if it does so on this machine
 * alone, and the file system is shared. */
static int print_scope(const struct place *place, const struct method *method)
{
	static const char *const words[] = {
	    "excludes",
	    "excludes, other machines as well",
	    "excludes on this machine only: as this is mounted, others do not see it",
	    "excludes on this machine; whether others see it is not known",
	};
	enum lock_scope scope = lock_scope(place, method);

	printf("%-8s %s%s\n", method->name, words[scope], exception(place, method, scope));
	return scope == SCOPE_HERE_ONLY ? EXIT_UNAVAILABLE : EXIT_SUCCESS;
}

/* What METHOD cannot lock, whatever the file system; or NULL. */
static const char *not_lockable(const struct place *place, const struct method *method)
{
	if ((method->can & FREED_BY_KERNEL) == 0)
		return NULL;
	if (S_ISFIFO(place->type))
		return "a FIFO";
	if (S_ISSOCK(place->type))
		return "a socket";
	if (S_ISDIR(place->type) && (method->can & CAN_RANGE) != 0)
		return "a directory";
	return S_ISDIR(place->type) && place->on_network ? "a directory for other machines" : NULL;
}

/* A kernel lock is tried on the scratch file; a lock made of files under a new name beside it, which the release
 * removes, but for rename's token.  A posix lock does not exclude its own process: the second lock is then an
 * OFD lock, which it excludes. */
static int try_method(const struct place *place, const struct method *method)
{
	const struct method *second = (method->can & OWNED_BY_PROCESS) != 0 ? method_named("ofd") : method;
	const char *object = not_lockable(place, method);
	char name[sizeof place->scratch + 8];
	struct error error;
	int status;

	if (object != NULL) {
		printf("%-8s cannot lock %s\n", method->name, object);
		return EXIT_UNAVAILABLE;
	}
	snprintf(name, sizeof name, "%s%s", place->scratch, (method->can & LEAVES_RECORD) != 0 ? ".lock" : "");
	status = try_pair(method, second, name, &error);
	if ((method->can & NEEDS_INIT) != 0)
		unlink(name);
	if (status == EXIT_SUCCESS)
		return print_scope(place, method);
	print_line("%-8s %s: %s", method->name, is_passing(&error) ? "cannot tell" : "does not exclude", error.text);
	return status;
}

/* Try all methods, or the one of -m.  Returns the exit status for that, or for the default. */
static int try_methods(const struct place *place, const struct request *request)
{
	const struct method *method;
	int status = EXIT_UNAVAILABLE;

	for (unsigned n = 0; (method = method_nth(n)) != NULL; n++)
		if (method == request->spec.method)
			status = try_method(place, method);
		else if ((method->can & HAS_LEASE) == 0 && !request->method_named)
			try_method(place, method);
	return status;
}

static void hear_check(const char *line, void *context)
{
	int *status = context;
	const char *text;

	if ((text = locksmith_says(line, "CHECK ok")) != NULL)
		print_line("yes      %s", text);
	else if ((text = locksmith_says(line, "CHECK note")) != NULL)
		print_line("note     %s", text);
	else if ((text = locksmith_says(line, "CHECK no")) != NULL) {
		print_line("NO       %s", text);
		*status = EXIT_UNAVAILABLE;
	}
}

static int check_server(const struct request *request)
{
	const struct lock lock = {.spec = &request->locks[0]};
	int status = EXIT_SUCCESS;
	struct error error;

	if (server_ask(&lock, "--check", hear_check, &status, &error) != 0) {
		complain("%s: %s", lock.spec->name, error.text);
		return exit_status_of(error.kind);
	}
	end_output(status);
}

int check(const struct request *request)
{
	struct place place = {
	    .name = request->locks[0].name,
	    .is_a_name = request->method_named && (request->spec.method->can & LEAVES_RECORD) != 0,
	};
	struct start_barrier barrier = {0};
	sigset_t mask, before;
	struct error error;
	int status;

	if ((request->spec.method->can & HAS_LEASE) != 0)
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
	status = children[1].pid > 0 ? try_methods(&place, request) : EXIT_SYSTEM;
	unlink(place.scratch);
	start_barrier_cancel(&barrier);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (children[1].pid < 0)
		die(EXIT_SYSTEM, "cannot start a process");
	end_output(status);
}
