/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lock/queue_trust.h"
#include "report/text.h"
#include "sys/deadline.h"
#include "sys/files.h"

/* O_CLOEXEC: a ticket must end with its owner. */
#define QUEUE_FLAGS (O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)

/* shm_open(3) uses the same directory, but makes more system calls. */
void queuefile_path(const struct lock *lock, char path[QUEUE_PATH_SIZE])
{
	const char *entry = lock->id.entry;
	const unsigned long long parts[] = {lock->id.file.device, lock->id.file.inode,
	    entry == NULL ? 0 : text_hash(entry)};
	char *at = stpcpy(path, QUEUE_DIRECTORY "/semlock");
	int shift;

	/* Write the numbers in hexadecimal, without stdio.  Two lock names with the same hash share
	 * a queue, which costs order only. */
	for (int i = 0; i < (entry == NULL ? 2 : 3); i++) {
		*at++ = '-';
		for (shift = 60; shift > 0 && parts[i] >> shift == 0;)
			shift -= 4;
		for (; shift >= 0; shift -= 4)
			*at++ = "0123456789abcdef"[parts[i] >> shift & 15];
	}
	*at = '\0';
}

/* Restrict OPENNESS to the users that can pass through DIRECTORY. */
static void narrow(struct openness *openness, const struct stat *directory)
{
	bool others = (directory->st_mode & S_IXOTH) != 0;
	bool members = (directory->st_mode & S_IXGRP) != 0;

	if (openness->mode == 0666 && !others)
		*openness = (struct openness){true, members ? 0660 : 0600, directory->st_gid};
	else if (openness->mode == 0660 &&
		 !(directory->st_gid == openness->group ? members : others))
		openness->mode = 0600;
}

/* The path of the lock, or of its directory, as the kernel knows it; false: no path leads there. */
static bool find_path(const struct lock *lock, char path[PATH_MAX])
{
	char self[32];
	struct stat found;
	ssize_t length;

	snprintf(self, sizeof self, "/proc/self/fd/%d",
	    lock->id.entry != NULL ? lock->files.directory : lock->fd);
	length = readlink(self, path, PATH_MAX - 1);
	if (length <= 0)
		return false;
	path[length] = '\0';
	return path[0] == '/' && stat(path, &found) == 0 && lock_is_on(lock, &found);
}

/* Step Q7 of tests/models: how open may the queue be?  As open as the lock and the directories
 * above it. */
static void look_how_open(struct openness *openness, const struct lock *lock)
{
	char path[PATH_MAX], *slash;
	struct stat directory;

	if (openness->known)
		return;
	*openness = (struct openness){true, 0600, lock->id.group};
	if ((lock->id.permissions & (S_IROTH | S_IWOTH)) != 0)
		openness->mode = 0666;
	else if ((lock->id.permissions & (S_IRGRP | S_IWGRP)) != 0)
		openness->mode = 0660;
	if (openness->mode != 0600 && !find_path(lock, path))
		openness->mode = 0600;
	while (openness->mode != 0600 && (slash = strrchr(path, '/')) != NULL) {
		*slash = '\0';
		if (stat(slash == path ? "/" : path, &directory) != 0)
			openness->mode = 0600;
		else
			narrow(openness, &directory);
	}
}

/* Can a user open FILE, the queue, who cannot open the lock?  Such a user could delay the
 * waiters. */
static bool is_wider(const struct stat *file, const struct openness *openness)
{
	if (openness->mode == 0666)
		return false;
	return (file->st_mode & S_IRWXO) != 0 ||
	       ((file->st_mode & S_IRWXG) != 0 &&
		   (openness->mode != 0660 || file->st_gid != openness->group));
}

/* Did a user of LOCK make FILE?  A file that belongs to the lock's group counts: only root, or a
 * member of a group, can give a file to that group. */
static bool is_made_by_ours(const struct stat *file, const struct lock *lock,
    const struct openness *openness)
{
	return file->st_uid == 0 || file->st_uid == lock->id.owner || file->st_uid == geteuid() ||
	       openness->mode == 0666 ||
	       (openness->mode == 0660 && file->st_gid == openness->group);
}

/* Step Q8 of tests/models: is the file no more open than the lock, and made by a user of the
 * lock? */
enum trust queuefile_check(int fd, const struct lock *lock, struct openness *openness)
{
	struct stat file;

	look_how_open(openness, lock);
	if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode) || file.st_nlink > 1 ||
	    is_wider(&file, openness) || !is_made_by_ours(&file, lock, openness))
		return NOT_TRUSTED;
	return file.st_nlink == 1 ? TRUSTED : REMOVED;
}

static int open_queuefile(const char *path, int flags)
{
	return openat(AT_FDCWD, path, QUEUE_FLAGS | flags, 0600);
}

/* Set the mode and the owner of FD, a new queue file.  Root gives it to the lock's owner, who can
 * then remove it.  Returns FD, or -1 with errno set. */
static int set_mode(int fd, const struct lock *lock, struct openness *openness)
{
	mode_t mode;

	if (fd < 0)
		return -1;
	look_how_open(openness, lock);
	mode = openness->mode;
	if (mode == 0660 && fchown(fd, (uid_t)-1, openness->group) != 0)
		mode = 0600;
	if (geteuid() == 0) /* if this fails, the file stays root's, which is trusted, too */
		(void)!fchown(fd, lock->id.owner, (gid_t)-1);
	if (fchmod(fd, mode) == 0)
		return fd;
	close(fd);
	return -1;
}

/* The file gets its mode before its name.  Otherwise a user that cannot open it yet would wait
 * outside the queue; and if we died in between, no other user could ever open it. */
static int create_queuefile(const char *path, const struct lock *lock, struct openness *openness)
{
	int fd = set_mode(open_queuefile(QUEUE_DIRECTORY, O_TMPFILE), lock, openness), errnum;
	char self[32];

	if (fd >= 0) {
		snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
		if (linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0)
			return fd;
		errnum = errno;
		close(fd);
		errno = errnum;
		if (errnum == EEXIST)
			return -1;
	}
	return set_mode(open_queuefile(path, O_CREAT | O_EXCL), lock, openness);
}

int queuefile_open(const struct lock *lock)
{
	char path[QUEUE_PATH_SIZE];

	queuefile_path(lock, path);
	return descriptor_above_standard(open_queuefile(path, 0));
}

int queuefile_open_or_create(const struct lock *lock, struct openness *openness)
{
	char path[QUEUE_PATH_SIZE];
	int fd;

	queuefile_path(lock, path);
	/* between the calls, another waiter may create the file, or the last one to leave may
	 * remove it */
	do {
		fd = open_queuefile(path, 0);
		if (fd < 0 && errno == ENOENT)
			fd = create_queuefile(path, lock, openness);
	} while (fd < 0 && errno == EEXIST);
	return descriptor_above_standard(fd);
}

int queuefile_remove(const struct lock *lock)
{
	char path[QUEUE_PATH_SIZE];

	queuefile_path(lock, path);
	return unlink(path);
}

/* A directory that is not empty is only moved: what another user put into it is not ours to
 * delete. */
int queuefile_clear(const struct lock *lock)
{
	char path[QUEUE_PATH_SIZE], aside[QUEUE_PATH_SIZE + 40];

	queuefile_path(lock, path);
	if (remove(path) == 0 || errno == ENOENT)
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return -1;
	snprintf(aside, sizeof aside, "%s.set-aside-%llx", path,
	    (unsigned long long)clock_realtime());
	return rename(path, aside);
}
