/* SPDX-License-Identifier: MIT */
/* sys/files.h - files and descriptors that the program opens for itself: the numbers of their
 * descriptors, which file they are, and calls repeated while a signal interrupts them (NFS, FUSE).
 * An interrupted call may have taken effect: then the next one fails with EEXIST or ENOENT, which
 * the caller must expect. */
#ifndef SEMLOCK_SYS_FILES_H
#define SEMLOCK_SYS_FILES_H

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Move FD, just opened, above standard error.  Otherwise, if the caller has closed 0, 1 or 2, a
 * file opened here would become the command's standard input or output.  Where MAKEFLAGS is set,
 * move it above 9: the command may be a make(1), which takes descriptors 3 and 4 for its
 * jobserver.  Returns the new descriptor, closed at exec, or -1 with errno set; then FD is closed.
 * -1, from a failed open(2), stays -1, and errno is kept. */
int descriptor_above_standard(int fd);

/* A pipe, both ends as above.  Returns 0, or -1 with errno set; then neither is open. */
int descriptor_pipe(int ends[2]);

/* The same for two connected stream sockets. */
int descriptor_socket_pair(int ends[2]);

/* Close all descriptors above standard error, in a process that outlives its parent: otherwise a
 * reader of one of the caller's pipes would wait for it. */
void descriptor_close_others(void);

/* pwrite(2) that fails with EFBIG, without SIGXFSZ, for a file above its size limit (ulimit -f). */
ssize_t descriptor_write(int fd, const void *bytes, size_t size, off_t offset);

/* A file, whatever its name is. */
struct identity {
	dev_t device;
	ino_t inode; /* 0: none */
};

/* The file that stat(2) put into STATUS. */
static inline struct identity identity_of(const struct stat *status)
{
	return (struct identity){status->st_dev, status->st_ino};
}

static inline bool same_file(struct identity one, struct identity other)
{
	return one.inode == other.inode && one.device == other.device;
}

/* PATH's directory: ".", "/", or PATH up to its last slash, put into SPACE.  NULL, with errno
 * ENAMETOOLONG, if SPACE is too small. */
const char *path_directory(const char *path, char space[PATH_MAX]);

/* PATH as an absolute path: PATH itself if it begins with a slash, else the working directory and
 * PATH, put into SPACE.  NULL with errno set: ENAMETOOLONG if SPACE is too small, or getcwd(3)
 * failed. */
const char *path_absolute(const char *path, char space[PATH_MAX]);

/* RESULT becomes the result of CALL: -1, with errno set, if it fails. */
#define UNINTERRUPTED(result, call) \
	do \
		(result) = (call); \
	while ((result) < 0 && errno == EINTR)

int call_open(int directory, const char *name, int flags, mode_t mode);
int call_unlink(int directory, const char *name, int flags);

/* flock(2) with LOCK_EX and LOCK_NB.  Not for a flock(2) that sleeps: that must return when a
 * signal comes. */
int call_try_flock(int fd);

/* Rename FROM to TO; fails with EEXIST if TO exists, and with EINVAL or ENOSYS if the file system
 * or the kernel cannot do that. */
int rename_noreplace(int directory, const char *from, const char *to);

#endif
