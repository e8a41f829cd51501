/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "sys/path.h"

const char *path_directory(const char *path, char space[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	size_t length = slash == NULL ? 0 : (size_t)(slash - path);

	if (slash == NULL)
		return ".";
	if (length == 0)
		return "/";
	if (length >= PATH_MAX) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	memcpy(space, path, length);
	space[length] = '\0';
	return space;
}
