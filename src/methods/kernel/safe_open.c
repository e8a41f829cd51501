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

/* Is STATUS that of a link which another user may have planted in DIRECTORY?  In a sticky
 * directory, a link of one of the users compared here is safe: only they can replace it between
 * this check and the open. */
static bool is_planted(const struct stat *status, const char *directory)
{
	struct stat parent;

	if (stat(directory, &parent) != 0)
		return true;
	if ((parent.st_mode & S_ISVTX) == 0 || (parent.st_mode & S_IWOTH) == 0)
		return false;
	return status->st_uid != geteuid() && status->st_uid != 0 &&
	       status->st_uid != parent.st_uid;
}

/* Replace PATH, a symbolic link, by its target.  Read the target through LINK_FD, the descriptor
 * that was checked: the link may have been replaced since. */
static int follow_one(char path[PATH_MAX], int link_fd)
{
	const char *slash = strrchr(path, '/');
	char target[PATH_MAX];
	ssize_t length = readlinkat(link_fd, "", target, sizeof target - 1);
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

/* Is it forbidden to follow the link that STATUS describes?  If so, ERROR is filled. */
static bool is_refused(const struct stat *status, const char *directory, enum links followed,
    struct error *error)
{
	const char *where = "put into a directory open to all";

	if (followed == LINKS_OF_CALLER_AND_ROOT) {
		if (status->st_uid == geteuid() || status->st_uid == 0)
			return false;
		where = "put there";
	} else if (!is_planted(status, directory))
		return false;
	error_plain(error, ERROR_OPEN, "refused: a symbolic link that user %ld %s",
	    (long)status->st_uid, where);
	return true;
}

enum follow_step { LED_ON, ENDS, ONLY_THE_KERNEL, REFUSED };

/* Follow one link: PATH, which is open as LINK_FD.  If it returns REFUSED, ERROR is filled. */
static enum follow_step follow_step(char path[PATH_MAX], int link_fd, enum links followed,
    struct error *error)
{
	char space[PATH_MAX];
	const char *directory;
	struct statfs fs;
	struct stat file;

	if (fstat(link_fd, &file) != 0) {
		/* otherwise, a link would be taken for a file, and we would try to open it
		 * forever */
		refuse_links(error, errno);
		return REFUSED;
	}
	if (!S_ISLNK(file.st_mode))
		return ENDS;
	directory = path_directory(path, space);
	if (directory == NULL) {
		refuse_links(error, errno);
		return REFUSED;
	}
	if (is_refused(&file, directory, followed, error))
		return REFUSED;
	if (statfs(directory, &fs) == 0 && fs.f_type == PROC_MAGIC)
		return ONLY_THE_KERNEL;
	/* ENOENT, EINVAL: since we opened the link, it was removed or replaced: look at the path
	 * again. */
	if (follow_one(path, link_fd) != 0 && errno != ENOENT && errno != EINVAL) {
		refuse_links(error, errno);
		return REFUSED;
	}
	return LED_ON;
}

int safe_open_follow(const char *name, enum links followed, char resolved[PATH_MAX],
    struct error *error)
{
	enum follow_step how;
	int link_fd;

	if (strlen(name) >= PATH_MAX)
		return refuse_links(error, ENAMETOOLONG);
	memcpy(resolved, name, strlen(name) + 1);
	for (int i = 0; i < MOST_SYMLINKS; i++) {
		link_fd = open(resolved, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (link_fd < 0)
			return O_NOFOLLOW; /* it does not exist, or cannot be opened at all */
		how = follow_step(resolved, link_fd, followed, error);
		close(link_fd);
		switch (how) {
		case LED_ON:
			break;
		case ENDS:
			return O_NOFOLLOW;
		case ONLY_THE_KERNEL:
			return 0;
		case REFUSED:
			return -1;
		}
	}
	return refuse_links(error, ELOOP);
}
