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

/* Where the locks are, and whose. */
struct place {
	bool of_root; /* in /run/semlock */
	uid_t user;   /* else in the home directory of this user */
};

/* Our effective user or, if that is uid 0 in a user namespace (unshare -r) or under fakeroot(1),
 * the user that it stands for: this user must get the same locks as outside. */
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

/* From the password database, not from HOME: cron, sudo, su, a login and a service must find the
 * same file.  Returns NULL if USER has no home directory there. */
static const char *home_directory(uid_t user)
{
	const struct passwd *entry;
#if defined STATIC_BINARY && defined __GLIBC__ /* its getpwuid(3) would load shared libraries */
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
	mode_t before = umask(0022); /* root's directory is open to all, for --who */
	int result = mkdir(directory, mode);

	umask(before);
	if (result != 0 && errno != EEXIST)
		return error_set(error, ERROR_CREATE, "cannot create the directory %.100s",
		    directory);
	return 0;
}

/* Root in a container has a /run of its own.  Root under unshare -r does not: use the home
 * directory of the user that it stands for. */
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
	/* if it does not exist, no lock in it is held */
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
