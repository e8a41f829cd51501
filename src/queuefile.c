#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "descriptor.h"
#include "lock.h"
#include "methods/namefile.h"
#include "queuefile.h"
#include "text.h"

/* Never on a descriptor that anybody inherits: a ticket must end with its drawer. */
#define QUEUE_FLAGS (O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)

/* A lock that is a name in a directory: two names of one hash would share a queue. */
static uint64_t hash_of(const char *name)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (; *name != '\0'; name++)
		hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
	return hash;
}

/* Where shm_open() of glibc, musl and bionic has it; their ways there are longer. */
void queuefile_path(const struct lock *lock, char path[QUEUE_PATH_SIZE])
{
	char *at = stpcpy(path, QUEUE_DIRECTORY "/semlock-");

	at = stpcpy(text_hex(at, (unsigned long long)lock->device), "-");
	at = text_hex(at, (unsigned long long)lock->inode);
	if (lock->file != NULL)
		text_hex(stpcpy(at, "-"), (unsigned long long)hash_of(lock->file->base));
}

/* Whoever may read the lock file may lock it, and so may queue for it. */
static mode_t queue_mode(const struct lock *lock, int fd)
{
	mode_t mode = 0600;

	if ((lock->permissions & S_IROTH) != 0)
		mode |= 0006;
	if ((lock->permissions & S_IRGRP) != 0 && fchown(fd, (uid_t)-1, lock->group) == 0)
		mode |= 0060;
	return mode;
}

/* Somebody else's file of that name could be locked all over to hold us up. */
enum trust queuefile_look(int fd, const struct lock *lock)
{
	struct stat file;

	if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode) || file.st_nlink > 1)
		return NOT_TRUSTED;
	if (file.st_uid != 0 && file.st_uid != lock->owner && file.st_uid != geteuid())
		return NOT_TRUSTED;
	return file.st_nlink == 1 ? TRUSTED : REMOVED;
}

static int open_file(const char *path, int flags)
{
	return openat(AT_FDCWD, path, QUEUE_FLAGS | flags, 0600);
}

int queuefile_open(const struct lock *lock)
{
	char path[QUEUE_PATH_SIZE];
	int fd;

	queuefile_path(lock, path);
	fd = open_file(path, 0);
	return fd < 0 ? -1 : descriptor_above_standard(fd);
}

static int set_mode(int fd, const struct lock *lock)
{
	if (fd >= 0 && fchmod(fd, queue_mode(lock, fd)) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static int create_named(const char *path, const struct lock *lock)
{
	return set_mode(open_file(path, O_CREAT | O_EXCL), lock);
}

/* With its mode before it has its name: another user who cannot open it yet would wait beside the
 * queue, and if we died in between, nobody else could ever open it. */
static int create(const char *path, const struct lock *lock)
{
	int fd = set_mode(open_file(QUEUE_DIRECTORY, O_TMPFILE), lock), errnum;
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
	return create_named(path, lock);
}

int queuefile_open_or_create(const struct lock *lock)
{
	char path[QUEUE_PATH_SIZE];
	int fd;

	queuefile_path(lock, path);
	do { /* another waiter may make it, or the last one remove it, between the two */
		fd = open_file(path, 0);
		if (fd < 0 && errno == ENOENT)
			fd = create(path, lock);
	} while (fd < 0 && errno == EEXIST);
	return fd < 0 ? -1 : descriptor_above_standard(fd);
}

void queuefile_remove(const struct lock *lock)
{
	char path[QUEUE_PATH_SIZE];

	queuefile_path(lock, path);
	unlink(path);
}
