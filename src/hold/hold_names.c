/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "hold/hold_names.h"
#include "methods/server/scheme.h"
#include "sys/files.h"
#include "sys/memory.h"

int hold_lock_name(const char *name, char text[PATH_MAX + 1], struct error *error)
{
	const char *slash = strrchr(name, '/'), *base = slash == NULL ? name : slash + 1;
	char space[PATH_MAX], real[PATH_MAX];
	const char *directory;
	int length;

	if (server_method(name) != NULL) {
		length = snprintf(text, PATH_MAX + 1, "%s", name);
		return length <= PATH_MAX ? 0
		                          : error_plain(error, ERROR_USAGE, "this URL is too long");
	}
	directory = path_directory(name, space);
	if (directory == NULL || realpath(directory, real) == NULL) {
		/* glibc 2.31 sets ERANGE where getcwd(2) failed with ENAMETOOLONG */
		if (errno == ERANGE)
			errno = ENAMETOOLONG;
		return error_set(error, ERROR_OPEN, "cannot name its directory");
	}
	length = snprintf(text, PATH_MAX + 1, "%s/%s", strcmp(real, "/") == 0 ? "" : real, base);
	if (length > PATH_MAX)
		return error_plain(error, ERROR_USAGE, "its path is too long");
	return 0;
}

/* Does ERRNUM mean that a directory's name is wrong?  Then do not fail here: the holder looks the
 * directory up again, and reports the error. */
static bool is_wrong_name(int errnum)
{
	return errnum == 0 || errnum == ENOENT || errnum == ENOTDIR || errnum == EACCES ||
	       errnum == ELOOP || errnum == ENAMETOOLONG;
}

int hold_names_list(struct hold_names *names, const struct request *request, struct error *error)
{
	char name[PATH_MAX + 1];
	char *copy;

	names->count = 0;
	names->list = memory_lasting(request->nlocks * sizeof *names->list);
	for (unsigned i = 0; names->list != NULL && i < request->nlocks; i++) {
		if (hold_lock_name(request->locks[i].name, name, error) != 0) {
			if (!is_wrong_name(error->errnum))
				/* do not go on: --release would report that its ID belongs to
				 * another lock */
				return -1;
			name[0] = '\0';
		}
		copy = memory_lasting(strlen(name) + 1);
		if (copy == NULL)
			break;
		names->list[names->count++] = strcpy(copy, name);
	}
	if (names->count < request->nlocks)
		return error_plain(error, ERROR_SYSTEM, "out of memory");
	return 0;
}

static bool is_one_file(const char *one, const char *other)
{
	struct stat of_one, of_other;

	return stat(one, &of_one) == 0 && stat(other, &of_other) == 0 &&
	       same_file(identity_of(&of_one), identity_of(&of_other));
}

/* Has the directory of NAME been removed?  A relative NAME comes from a caller whose directory
 * could not be named. */
static bool has_lost_directory(const char *name)
{
	char space[PATH_MAX];
	const char *directory = path_directory(name, space);
	struct stat status;

	return name[0] != '/' || (directory != NULL && stat(directory, &status) != 0 &&
				     (errno == ENOENT || errno == ENOTDIR));
}

static const char *last_part(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash == NULL ? name : slash + 1;
}

/* If both directories were removed, there are no real names to compare: compare the last parts. */
static bool are_both_lost(const char *name, const char *listed)
{
	return listed[0] == '/' && strcmp(last_part(name), last_part(listed)) == 0 &&
	       has_lost_directory(listed) && has_lost_directory(name);
}

bool hold_names_have(const struct hold_names *names, const char *name)
{
	for (unsigned i = 0; i < names->count; i++)
		if (strcmp(name, names->list[i]) == 0 || is_one_file(name, names->list[i]) ||
		    are_both_lost(name, names->list[i]))
			return true;
	return false;
}
