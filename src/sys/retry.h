/* SPDX-License-Identifier: MIT */
/* sys/retry.h - calls on files and names, made again while a signal interrupts them (NFS, FUSE).
 * An interrupted call may have taken effect: then the next one fails with EEXIST or ENOENT, which the
 * caller is to expect. */
#ifndef SEMLOCK_SYS_RETRY_H
#define SEMLOCK_SYS_RETRY_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* RESULT becomes the result of CALL: -1, with errno set, if it fails. */
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

/* Rename FROM to TO, unless TO exists: EEXIST.  EINVAL, ENOSYS: the file system or the kernel cannot. */
static inline int rename_noreplace(int directory, const char *from, const char *to)
{
	const unsigned noreplace = 1; /* RENAME_NOREPLACE, which older headers lack */

	return (int)syscall(SYS_renameat2, directory, from, directory, to, noreplace);
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

/* Only with LOCK_NB: a flock(2) that sleeps must return when a signal comes. */
static inline int call_try_flock(int fd)
{
	int result;

	UNINTERRUPTED(result, flock(fd, LOCK_EX | LOCK_NB));
	return result;
}

#endif
