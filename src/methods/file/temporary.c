/* Names that only the dead leave behind: .LOCK.semlock.PID.WHERE.RANDOM, and with "gone" in
 * it for what is being taken apart.  WHERE stands for host, boot and PID namespace: a PID
 * means something only where these are the same. */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sys/crash_points.h"
#include "sys/retry.h"
#include "methods/file/namefile.h"

#ifndef SYS_getrandom /* its number is each machine's own: as if the kernel did not know it */
#define SYS_getrandom -1
#endif

/* So old must it be before a PID that means nothing here is not asked for: where locks can
 * be believed, and where they cannot. */
#define SETTLED (60 * SECOND)
#define FORGOTTEN (86400 * SECOND)

static uint32_t hash(uint32_t value, const char *text)
{
	for (; *text != '\0'; text++)
		value = (value ^ (unsigned char)*text) * 16777619u;
	return value;
}

static uint32_t where_we_are(void)
{
	char pidns[24];

	snprintf(pidns, sizeof pidns, "%llu", (unsigned long long)host_id()->pidns);
	return hash(hash(hash(2166136261u, host_id()->host), host_id()->boot), pidns);
}

uint32_t namefile_random(void)
{
	static uint32_t count;
	uint32_t number = 0;

	if (syscall(SYS_getrandom, &number, sizeof number, 0) == (long)sizeof number)
		return number;
	return (uint32_t)time(NULL) + ++count * 2654435761u;
}

/* Room for the rest, however long the lock's own name is. */
static int prefix_of(const struct namefile *file, char prefix[NAME_SIZE])
{
	return snprintf(prefix, NAME_SIZE, ".%.180s.semlock.", file->base);
}

void namefile_temporary(struct namefile *file, const char *what)
{
	char prefix[NAME_SIZE];

	prefix_of(file, prefix);
	snprintf(file->temporary, sizeof file->temporary, "%.200s%s%ld.%08x.%08x", prefix, what,
	    (long)getpid(), where_we_are(), namefile_random());
}

static int make_nameless(const struct namefile *file, mode_t mode)
{
	int fd;

	UNINTERRUPTED(fd, FAULT_POINT("namefile.tmpfile") ? -1
		: openat(file->directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode));
	return fd;
}

static int make_named(struct namefile *file, mode_t mode)
{
	int fd;

	do {
		namefile_temporary(file, "");
		fd = openat(file->directory, file->temporary,
		    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	} while (fd < 0 && (errno == EEXIST || errno == EINTR));
	if (fd < 0)
		file->temporary[0] = '\0';
	return fd;
}

int namefile_create(struct namefile *file, mode_t mode)
{
	int fd = file->named ? -1 : make_nameless(file, mode);

	return fd >= 0 ? fd : make_named(file, mode);
}

int64_t namefile_now(const struct namefile *file)
{
	struct namefile clock = *file;
	struct stat status;
	int64_t now = -1;
	int fd;

	clock.temporary[0] = '\0';
	fd = namefile_create(&clock, 0600);
	if (fd < 0)
		return -1;
	if (fstat(fd, &status) == 0)
		now = namefile_mtime(&status);
	if (clock.temporary[0] != '\0')
		call_unlink(clock.directory, clock.temporary, 0);
	close(fd);
	return now;
}

/* Has its maker died?  Nobody may have it under flock; FD is what the name means. */
static bool abandoned(const struct lock *lock, const char *rest, int fd)
{
	long pid;
	unsigned where;
	struct stat status;
	int64_t now;

	if (strncmp(rest, "gone.", 5) == 0)
		rest += 5;
	if (sscanf(rest, "%ld.%8x.%*8x", &pid, &where) != 2 || pid <= 0 ||
	    call_try_flock(fd) != 0 || fstat(fd, &status) != 0)
		return false;
	if (where == where_we_are())
		return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
	now = namefile_now(lock->file);
	return now >= 0 &&
	       now - namefile_mtime(&status) > (lock->file->local ? SETTLED : FORGOTTEN);
}

static void sweep_one(const struct lock *lock, const char *name, size_t prefix)
{
	const struct namefile *file = lock->file;
	int fd = openat(file->directory, name,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct stat status;

	if (fd < 0)
		return;
	if (fstat(fd, &status) == 0 && abandoned(lock, name + prefix, fd)) {
		if (S_ISDIR(status.st_mode))
			call_unlink(fd, "pid", 0);
		call_unlink(file->directory, name, S_ISDIR(status.st_mode) ? AT_REMOVEDIR : 0);
	}
	close(fd);
}

void namefile_sweep(const struct lock *lock)
{
	const struct namefile *file = lock->file;
	char prefix[NAME_SIZE];
	size_t length = (size_t)prefix_of(file, prefix);
	int fd = call_open(file->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (directory == NULL) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(directory)) != NULL)
		if (strncmp(entry->d_name, prefix, length) == 0)
			sweep_one(lock, entry->d_name, length);
	closedir(directory);
}
