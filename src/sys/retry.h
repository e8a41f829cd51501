/* sys/retry.h - calls on files and names that a signal may interrupt (over NFS and FUSE), made
 * again until it has not.  That what was interrupted may have been done all the same is for the
 * caller to see: then it says that the name exists, or is gone. */
#ifndef SEMLOCK_SYS_RETRY_H
#define SEMLOCK_SYS_RETRY_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* RESULT becomes CALL's, which is -1 with errno set if it fails. */
#define UNINTERRUPTED(result, call) \
	do \
		(result) = (call); \
	while ((result) < 0 && errno == EINTR)

static inline int call_open(int directory, const char *name, int flags, mode_t mode)
{
	int fd;

	UNINTERRUPTED(fd, openat(directory, name, flags, mode));
	return fd;
}

static inline int call_unlink(int directory, const char *name, int flags)
{
	int result;

	UNINTERRUPTED(result, unlinkat(directory, name, flags));
	return result;
}

static inline int call_rename(int directory, const char *from, const char *to)
{
	int result;

	UNINTERRUPTED(result, renameat(directory, from, directory, to));
	return result;
}

static inline int call_mkdir(int directory, const char *name, mode_t mode)
{
	int result;

	UNINTERRUPTED(result, mkdirat(directory, name, mode));
	return result;
}

static inline int call_truncate(int fd, off_t length)
{
	int result;

	UNINTERRUPTED(result, ftruncate(fd, length));
	return result;
}

/* To try; who sleeps in flock(2) is to be woken by a signal. */
static inline int call_try_flock(int fd)
{
	int result;

	UNINTERRUPTED(result, flock(fd, LOCK_EX | LOCK_NB));
	return result;
}

#endif
