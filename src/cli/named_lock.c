/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/named_lock.h"

/* A plain file name, and none that other programs hide or clean away. */
static int check_lock_name(const char *name, struct error *error)
{
	if (*name == '\0' || *name == '.' || strchr(name, '/') != NULL || strlen(name) > 200)
		return error_plain(error, ERROR_USAGE,
		    "not a name for a lock: one word of up to 200 bytes, without a slash, and not "
		    "beginning with a dot");
	for (; *name != '\0'; name++)
		if ((unsigned char)*name < 0x20 || *name == 0x7f)
			return error_plain(error, ERROR_USAGE,
			    "not a name for a lock: it has a control character in it");
	return 0;
}

/* By the password database, not by HOME: cron, sudo, su, a login and a service have to meet in one
 * file. Returns NULL if there is none. */
static const char *home_directory(void)
{
	const struct passwd *entry;
#if defined STATIC_BINARY && defined __GLIBC__ /* its getpwuid(3) would load shared libraries */
	FILE *database = fopen("/etc/passwd", "re");

	do
		entry = database == NULL ? NULL : fgetpwent(database);
	while (entry != NULL && entry->pw_uid != geteuid());
#else
	entry = getpwuid(geteuid());
#endif
	return entry == NULL || *entry->pw_dir != '/' ? NULL : entry->pw_dir;
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

/* Put the path of the user's directory into DIRECTORY, and with CREATE make what is missing of it.
 * Returns 0, or -1 with ERROR filled. */
static int find_directory(char directory[PATH_MAX], bool create, struct error *error)
{
	static const char below[][sizeof "/semlock"] = {"/.local", "/state", "/semlock"};
	const char *home = home_directory();
	struct stat file;
	size_t length;

	if (geteuid() == 0) {
		strcpy(directory, "/run/semlock");
		return create ? make_directory(directory, 0755, error) : 0;
	}
	length = home == NULL ? 0 : strlen(home);
	if (length == 0 || length > PATH_MAX - 256)
		return error_plain(error, ERROR_OPEN,
		    "user %lu has no home directory in the password database: name a file as LOCK "
		    "instead",
		    (unsigned long)geteuid());
	if (stat(home, &file) != 0)
		return error_set(error, ERROR_OPEN,
		    "needs the home directory %.100s: name a file as LOCK instead", home);
	if (!S_ISDIR(file.st_mode) || file.st_uid != geteuid() || (file.st_mode & S_IWOTH) != 0)
		return error_plain(error, ERROR_OPEN,
		    "the home directory %.100s is not user %lu's alone: name a file as LOCK "
		    "instead",
		    home, (unsigned long)geteuid());
	strcpy(directory, home);
	for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
		strcat(directory, below[i]);
		if (create && make_directory(directory, 0700, error) != 0)
			return -1;
	}
	return 0;
}

char *named_lock_path(const char *name, bool create, struct error *error)
{
	mode_t forbidden = geteuid() == 0 ? S_IWGRP | S_IWOTH : S_IRWXG | S_IRWXO;
	char directory[PATH_MAX], *path;
	struct stat file;

	if (check_lock_name(name, error) != 0 || find_directory(directory, create, error) != 0)
		return NULL;
	/* Where it is not there, no lock in it is held.  A symbolic link is not followed. */
	if ((create || access(directory, F_OK) == 0) &&
	    (lstat(directory, &file) != 0 || !S_ISDIR(file.st_mode) || file.st_uid != geteuid() ||
		(file.st_mode & forbidden) != 0)) {
		error_plain(error, ERROR_OPEN,
		    "not a directory of ours alone, with mode %s: not to be trusted (%.100s)",
		    geteuid() == 0 ? "0755" : "0700", directory);
		return NULL;
	}
	if (asprintf(&path, "%s/%s", directory, name) >= 0)
		return path;
	error_set(error, ERROR_SYSTEM, "cannot name it");
	return NULL;
}
