/* SPDX-License-Identifier: MIT */
/* sys/files.h - files and descriptors that the program opens for itself: where their descriptors
 * lie, and calls made again while a signal interrupts them (NFS, FUSE).  An interrupted call may
 * have taken effect: then the next one fails with EEXIST or ENOENT, which the caller is to
 * expect. */
#ifndef SEMLOCK_SYS_FILES_H
#define SEMLOCK_SYS_FILES_H

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

/* Move FD, just opened, above standard error: if the caller has closed 0, 1 or 2, a file opened
 * here must not become the command's standard input or output.  Where MAKEFLAGS is set, above 9:
 * the command may be a make(1), which takes what is open as 3 and 4 for its jobserver.  Returns the
 * new descriptor, closed at exec, or -1 with errno set; then FD is closed.  -1, as of a failed
 * open(2), stays -1, and errno as it is. */
int descriptor_above_standard(int fd);

/* A pipe, both ends as above.  Returns 0, or -1 with errno set; then neither is open. */
int descriptor_pipe(int ends[2]);

/* The same for two connected stream sockets. */
int descriptor_socket_pair(int ends[2]);

/* Close all above standard error, in a process that outlives its parent: a reader of one of the
 * caller's pipes must not wait for it. */
void descriptor_close_others(void);

/* pwrite(2), with EFBIG for a file over the limit of its size (ulimit -f), and no SIGXFSZ. */
ssize_t descriptor_write(int fd, const void *bytes, size_t size, off_t offset);

/* PATH's directory: ".", "/", or PATH up to its last slash, put into SPACE.  NULL, with errno
 * ENAMETOOLONG, if SPACE is too small. */
const char *path_directory(const char *path, char space[PATH_MAX]);

/* RESULT becomes the result of CALL: -1, with errno set, if it fails. */
#define UNINTERRUPTED(result, call) \
	do \
		(result) = (call); \
	while ((result) < 0 && errno == EINTR)

int call_open(int directory, const char *name, int flags, mode_t mode);
int call_unlink(int directory, const char *name, int flags);

/* flock(2), exclusive, with LOCK_NB alone: one that sleeps must return when a signal comes. */
int call_try_flock(int fd);

/* Rename FROM to TO, unless TO exists: EEXIST.  EINVAL, ENOSYS: the file system or the kernel
 * cannot. */
int rename_noreplace(int directory, const char *from, const char *to);

#endif
