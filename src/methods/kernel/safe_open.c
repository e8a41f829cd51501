/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "methods/kernel/safe_open.h"
#include "sys/files.h"

enum { MOST_SYMLINKS = 40, PROC_MAGIC = 0x9fa0 };

/* The directory is sticky: only the users named here can replace the link between this check and
 * the open. */
static bool is_planted(const struct stat *link, const char *directory)
{
	struct stat parent;

	if (stat(directory, &parent) != 0)
		return true;
	if ((parent.st_mode & S_ISVTX) == 0 || (parent.st_mode & S_IWOTH) == 0)
		return false;
	return link->st_uid != geteuid() && link->st_uid != 0 && link->st_uid != parent.st_uid;
}

/* PATH, a symbolic link, becomes its target. */
static int follow_one(char path[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	char target[PATH_MAX];
	ssize_t length = readlink(path, target, sizeof target - 1);
	size_t kept;

	if (length < 0)
		return -1;
	target[length] = '\0';
	kept = target[0] == '/' || slash == NULL ? 0 : (size_t)(slash - path) + 1;
	if (kept + (size_t)length >= PATH_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(path + kept, target, (size_t)length + 1);
	return 0;
}

static int refuse_links(struct error *error, int errnum)
{
	errno = errnum;
	return error_set(error, ERROR_OPEN, "cannot open");
}

int safe_open_follow(const char *name, char resolved[PATH_MAX], struct error *error)
{
	char space[PATH_MAX];
	const char *directory;
	struct statfs fs;
	struct stat link;

	if (strlen(name) >= PATH_MAX)
		return refuse_links(error, ENAMETOOLONG);
	memcpy(resolved, name, strlen(name) + 1);
	for (int i = 0; i < MOST_SYMLINKS; i++) {
		if (lstat(resolved, &link) != 0 || !S_ISLNK(link.st_mode))
			return O_NOFOLLOW;
		directory = path_directory(resolved, space);
		if (directory == NULL)
			return refuse_links(error, errno);
		if (is_planted(&link, directory))
			return error_plain(error, ERROR_OPEN,
			    "refused: a symbolic link that user %ld put into a directory open to "
			    "all",
			    (long)link.st_uid);
		if (statfs(directory, &fs) == 0 && fs.f_type == PROC_MAGIC)
			return 0;
		/* ENOENT, EINVAL: removed or replaced since the lstat: check again. */
		if (follow_one(resolved) != 0 && errno != ENOENT && errno != EINVAL)
			return refuse_links(error, errno);
	}
	return refuse_links(error, ELOOP);
}
