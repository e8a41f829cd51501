/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/named_lock.h"

#define ROOTS_PLACE "/run/semlock"

/* Accept only a plain file name that other programs neither hide nor clean up. */
static int check_lock_name(const char *name, struct error *error)
{
	if (*name == '\0' || *name == '.' || strchr(name, '/') != NULL || strlen(name) > 200)
		return error_plain(error, ERROR_USAGE,
		    "invalid lock name: must have 1 to 200 bytes, no slash, and no dot at the "
		    "beginning");
	for (; *name != '\0'; name++)
		if ((unsigned char)*name < 0x20 || *name == 0x7f)
			return error_plain(error, ERROR_USAGE,
			    "invalid lock name: contains a control character");
	return 0;
}

/* Which directory --name uses. */
struct place {
	bool of_root; /* /run/semlock */
	uid_t user;   /* else .local/state/semlock in the home directory of this user */
};

/* Whose locks does this process use?  Those of its effective user, as the kernel sees it:
 * fakeroot(1) only pretends that we are root.  In a user namespace (unshare -r), uid 0 stands for a
 * user outside, who must get the same locks inside as outside: return that user. */
static uid_t user_behind_root(void)
{
	unsigned long inside, outside;
	uid_t user = (uid_t)syscall(SYS_geteuid);
	FILE *map = user != 0 ? NULL : fopen("/proc/self/uid_map", "re");

	if (map != NULL) {
		if (fscanf(map, "%lu %lu", &inside, &outside) == 2 && inside == 0)
			user = (uid_t)outside;
		fclose(map);
	}
	return user;
}

/* The home directory of USER, from the password database.  Not from HOME, which differs between
 * cron, sudo, su, a login and a service: all of them must find the same file.  Returns NULL if the
 * database has no home directory for USER. */
static const char *home_directory(uid_t user)
{
	const struct passwd *entry;
#if defined STATIC_BINARY && defined __GLIBC__ /* glibc's getpwuid(3) would load shared libraries */
	FILE *database = fopen("/etc/passwd", "re");

	do
		entry = database == NULL ? NULL : fgetpwent(database);
	while (entry != NULL && entry->pw_uid != user);
#else
	entry = getpwuid(user);
#endif
	return entry == NULL || *entry->pw_dir != '/' ? NULL : entry->pw_dir;
}

static bool belongs_to_us(const struct stat *file)
{
	return file->st_uid == geteuid() || file->st_uid == (uid_t)syscall(SYS_geteuid);
}

static bool is_private(const char *directory, bool of_root)
{
	const mode_t forbidden = of_root ? S_IWGRP | S_IWOTH : S_IRWXG | S_IRWXO;
	struct stat file;

	/* a symbolic link is not followed */
	return lstat(directory, &file) == 0 && S_ISDIR(file.st_mode) && belongs_to_us(&file) &&
	       (file.st_mode & forbidden) == 0;
}

static int make_directory(const char *directory, mode_t mode, struct error *error)
{
	mode_t before = umask(0022); /* with --who, any user may look into root's directory */
	int result = mkdir(directory, mode);

	umask(before);
	if (result != 0 && errno != EEXIST)
		return error_set(error, ERROR_CREATE, "cannot create the directory %.100s",
		    directory);
	return 0;
}

/* Choose the directory.  Root in a container has its own /run, and uses /run/semlock there.  Root
 * under unshare -r cannot write to /run: use the home directory of the user that this root stands
 * for. */
static struct place find_place(bool create)
{
	struct place place = {.of_root = geteuid() == 0, .user = geteuid()};
	struct error error;
	bool usable;

	if (!place.of_root)
		return place;
	place.user = user_behind_root();
	if (place.user == 0)
		return place;
	usable = (uid_t)syscall(SYS_geteuid) == 0 &&
	         (create ? make_directory(ROOTS_PLACE, 0755, &error) == 0
			 : access(ROOTS_PLACE, F_OK) == 0 || access("/run", W_OK) == 0);
	if (usable && access(ROOTS_PLACE, F_OK) == 0)
		usable = is_private(ROOTS_PLACE, true);
	place.of_root = usable;
	return place;
}

static int find_home(const struct place *place, char directory[PATH_MAX], struct error *error)
{
	const char *home = home_directory(place->user);
	const size_t length = home == NULL ? 0 : strlen(home);
	struct stat file;

	if (length == 0 || length > PATH_MAX - 256)
		return error_plain(error, ERROR_OPEN,
		    "user %lu has no home directory in the password database: name a file as LOCK "
		    "instead",
		    (unsigned long)place->user);
	if (stat(home, &file) != 0)
		return error_plain(error, ERROR_OPEN,
		    "the home directory %.100s: %s: name a file as LOCK instead", home,
		    strerror(errno));
	if (!S_ISDIR(file.st_mode) || !belongs_to_us(&file) || (file.st_mode & S_IWOTH) != 0)
		return error_plain(error, ERROR_OPEN,
		    "the home directory %.100s is not owned by user %lu, or others may write to "
		    "it: name a file as LOCK instead",
		    home, (unsigned long)place->user);
	strcpy(directory, home);
	return 0;
}

/* Put the path of PLACE's directory into DIRECTORY; with CREATE, create what is missing.  Returns
 * 0, or -1 with ERROR filled. */
static int find_directory(const struct place *place, char directory[PATH_MAX], bool create,
    struct error *error)
{
	static const char below[][sizeof "/semlock"] = {"/.local", "/state", "/semlock"};

	if (place->of_root) {
		strcpy(directory, ROOTS_PLACE);
		return create ? make_directory(directory, 0755, error) : 0;
	}
	if (find_home(place, directory, error) != 0)
		return -1;
	for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
		strcat(directory, below[i]);
		if (create && make_directory(directory, 0700, error) != 0)
			return -1;
	}
	return 0;
}

char *named_lock_path(const char *name, bool create, struct error *error)
{
	char directory[PATH_MAX], *path;
	struct place place;

	if (check_lock_name(name, error) != 0)
		return NULL;
	place = find_place(create);
	if (find_directory(&place, directory, create, error) != 0)
		return NULL;
	/* without CREATE, a missing directory is no error: no lock in it can be held */
	if ((create || access(directory, F_OK) == 0) && !is_private(directory, place.of_root)) {
		error_plain(error, ERROR_OPEN,
		    "not trusted: the directory %.100s must be yours, with mode %s", directory,
		    place.of_root ? "0755" : "0700");
		return NULL;
	}
	if (asprintf(&path, "%s/%s", directory, name) >= 0)
		return path;
	error_set(error, ERROR_SYSTEM, "cannot build its path");
	return NULL;
}
