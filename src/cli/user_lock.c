#include <config.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/user_lock.h"

/* A plain file name, and none that other programs hide or clean away. */
static int check_lock_name(const char *name, struct error *error)
{
	if (*name == '\0' || *name == '.' || strchr(name, '/') != NULL || strlen(name) > 200)
		return error_say(error, ERROR_USAGE,
		    "not a name for a lock: one word of up to 200 bytes, without a slash, and not "
		    "beginning with a dot");
	for (; *name != '\0'; name++)
		if ((unsigned char)*name < 0x20 || *name == 0x7f)
			return error_say(error, ERROR_USAGE,
			    "not a name for a lock: it has a control character in it");
	return 0;
}

/* A directory of ours, and no symbolic link, with none of the permissions FORBIDDEN. */
static bool is_private(const char *directory, mode_t forbidden)
{
	struct stat file;

	return lstat(directory, &file) == 0 && S_ISDIR(file.st_mode) &&
	       file.st_uid == geteuid() && (file.st_mode & forbidden) == 0;
}

/* The user's runtime directory, or NULL.  After "su" or "sudo", the variable may still name another
 * user's. */
static const char *runtime_directory(void)
{
	static char path[64];
	const char *named = getenv("XDG_RUNTIME_DIR");

	if (named != NULL && *named == '/' && strlen(named) < PATH_MAX - 256 &&
	    is_private(named, S_IWGRP | S_IWOTH))
		return named;
	snprintf(path, sizeof path, "/run/user/%lu", (unsigned long)geteuid());
	return is_private(path, S_IWGRP | S_IWOTH) ? path : NULL;
}

static int check_directory(const char *directory, bool create, struct error *error)
{
	if (create && mkdir(directory, 0700) != 0 && errno != EEXIST)
		return error_set(error, ERROR_CREATE, "cannot create the directory %.100s", directory);
	if (access(directory, F_OK) != 0 && !create)
		return 0; /* then no lock in it is held */
	if (!is_private(directory, S_IRWXG | S_IRWXO))
		return error_say(error, ERROR_OPEN,
		    "not a directory of ours alone, with mode 0700: not to be trusted (%.100s)", directory);
	return 0;
}

char *user_lock_path(const char *name, bool create, struct error *error)
{
	const char *runtime = runtime_directory();
	char directory[PATH_MAX], *path;

	if (runtime != NULL)
		snprintf(directory, sizeof directory, "%s/semlock", runtime);
	else
		snprintf(directory, sizeof directory, "/tmp/semlock-%lu", (unsigned long)geteuid());
	if (check_lock_name(name, error) != 0 || check_directory(directory, create, error) != 0)
		return NULL;
	if (asprintf(&path, "%s/%s", directory, name) >= 0)
		return path;
	error_set(error, ERROR_SYSTEM, "cannot name it");
	return NULL;
}
