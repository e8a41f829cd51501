#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "exitcode.h"
#include "mounts.h"
#include "occupants.h"
#include "reach.h"
#include "report.h"

struct place {
	const char *name;
	char scratch[PATH_MAX]; /* a file of ours on the same file system */
	bool is_directory;
	bool mounted; /* MOUNT is known */
	struct procfs_mount mount;
};

/* The directory that the lock is in, links followed; the lock itself if it is one. */
static int find_directory(struct place *place, char directory[PATH_MAX])
{
	struct stat file = {0};
	char *slash;

	errno = ENAMETOOLONG;
	if (strlen(place->name) >= PATH_MAX)
		return -1;
	strcpy(directory, place->name);
	if (lstat(place->name, &file) == 0 && S_ISLNK(file.st_mode) &&
	    (realpath(place->name, directory) == NULL || stat(directory, &file) != 0))
		return -1;
	place->is_directory = S_ISDIR(file.st_mode);
	if (place->is_directory)
		return 0;
	slash = strrchr(directory, '/');
	if (slash == NULL)
		strcpy(directory, ".");
	else if (slash == directory)
		directory[1] = '\0';
	else
		*slash = '\0';
	return 0;
}

static int make_scratch(struct place *place, struct why *why)
{
	char directory[PATH_MAX];
	int fd;

	if (find_directory(place, directory) != 0)
		return why_set(why, TROUBLE_OPEN, "cannot look at it");
	if ((size_t)snprintf(place->scratch, sizeof place->scratch, "%s/.semlock-check-XXXXXX",
		directory) >= sizeof place->scratch) {
		errno = ENAMETOOLONG;
		return why_set(why, TROUBLE_OPEN, "cannot look at it");
	}
	fd = mkstemp(place->scratch);
	if (fd < 0)
		return why_set(why, errno == ENOENT || errno == ENOTDIR ? TROUBLE_OPEN : TROUBLE_CREATE,
		    "cannot try: cannot make a file beside it");
	place->mounted = mounts_find(fd, &place->mount);
	close(fd);
	return 0;
}

static bool open_pair(struct lock pair[2], const struct method *first,
    const struct method *second, const char *path, struct why *why)
{
	for (int i = 0; i < 2; i++) {
		pair[i] = (struct lock){
		    .method = i == 0 ? first : second,
		    .name = path,
		    .mode = EXCLUSIVE,
		    .access = O_RDWR,
		    .fd = -1,
		    .slot = -1,
		};
		if (lock_open(&pair[i], why) != 0)
			return false;
	}
	return true;
}

/* Two descriptions of one file: the second must be kept out as long as the first is in, and
 * let in after that. */
static bool excludes(const struct method *first, const struct method *second, const char *path,
    struct why *why)
{
	struct lock pair[2] = {{.fd = -1}, {.fd = -1}};
	bool kept_out = false, let_in = false;

	why_say(why, TROUBLE_UNAVAILABLE, "two at the same time");
	if (open_pair(pair, first, second, path, why) &&
	    first->take(&pair[0], TRY, why) == TAKEN) {
		kept_out = second->take(&pair[1], TRY, why) == BUSY;
		if (kept_out && first->drop(&pair[0], why) == 0)
			let_in = second->take(&pair[1], TRY, why) == TAKEN;
	}
	lock_forget(&pair[0]);
	lock_forget(&pair[1]);
	return kept_out && let_in;
}

static enum reach reach(const struct place *place, const struct method *method)
{
	struct lock lock = {.method = method};

	if (!place->mounted)
		return REACH_UNKNOWN;
	return reach_of(&place->mount, occupants_kinds(&lock) == KIND_FLOCK ? KIND_FLOCK : KIND_POSIX);
}

/* Print what became of METHOD.  A process's own locks do not exclude the process itself: for
 * those, the second lock is one of another kind that must be kept out, too. */
static bool try_method(const struct place *place, const struct method *method)
{
	static const char *const words[] = {
	    "excludes",
	    "excludes, other machines as well",
	    "excludes on this machine only: as this is mounted, others do not see it",
	    "excludes on this machine; whether others see it is not known",
	};
	const struct method *second = method;
	struct why why;

	if (place->is_directory && (method->can & CAN_RANGE) != 0) {
		printf("%-8s cannot lock a directory\n", method->name);
		return false;
	}
	if ((method->can & OWNED_BY_PROCESS) != 0)
		second = method_named("ofd");
	if (second == NULL) {
		printf("%-8s not tried: this takes two processes\n", method->name);
		return true;
	}
	if (!excludes(method, second, place->scratch, &why)) {
		printf("%-8s does not exclude: %s\n", method->name, why.text);
		return false;
	}
	printf("%-8s %s\n", method->name, words[reach(place, method)]);
	return reach(place, method) != REACH_HERE_ONLY;
}

int check(const struct options *options)
{
	struct place place = {.name = options->locks[0].name};
	const struct method *method;
	bool good = false, this_one;
	struct why why;

	if (make_scratch(&place, &why) != 0) {
		complain("%s: %s", place.name, why.text);
		return exit_status_of(why.trouble);
	}
	if (place.mounted)
		printf("on       %s (%s, mounted at %s)\n", place.mount.type, place.mount.source,
		    place.mount.point);
	for (unsigned n = 0; (method = method_nth(n)) != NULL; n++) {
		if ((method->can & (LEAVES_RECORD | ON_SERVER)) != 0)
			continue;
		this_one = try_method(&place, method);
		good = good || (method == options->method && this_one);
	}
	unlink(place.scratch);
	if (fflush(stdout) != 0 || ferror(stdout))
		die(EXIT_SYSTEM, "cannot write to standard output");
	return good ? EXIT_SUCCESS : EXIT_UNAVAILABLE;
}
