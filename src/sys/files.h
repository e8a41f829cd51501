/* SPDX-License-Identifier: MIT */
/* sys/files.h - files and descriptors that semlock opens for itself.  Its descriptors get numbers
 * that the command does not use, files are compared by device and inode, and calls that a signal
 * interrupts (on NFS and FUSE) are repeated.  An interrupted call may have taken effect: then the
 * repeated call fails with EEXIST or ENOENT, which the caller must expect. */
#ifndef SEMLOCK_SYS_FILES_H
#define SEMLOCK_SYS_FILES_H

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Move FD, just opened, above standard error.  Otherwise, if the caller has closed 0, 1 or 2, a
 * file opened here would become the command's standard input or output.  If MAKEFLAGS is set, move
 * FD above 9: the command may be a make(1), which takes descriptors 3 and 4 for its jobserver.
 * Returns the new descriptor, closed at exec; or -1 with errno set, and FD is closed.  If FD is -1,
 * from a failed open(2), returns -1 and keeps errno. */
int descriptor_above_standard(int fd);

/* Make a pipe, and move both ends as descriptor_above_standard() does.  Returns 0, or -1 with errno
 * set; then neither end is open. */
int descriptor_pipe(int ends[2]);

/* The same for two connected stream sockets. */
int descriptor_socket_pair(int ends[2]);

/* Close all descriptors above standard error.  A process that may outlive semlock calls this:
 * otherwise a program that reads one of the caller's pipes would wait for that process to end. */
void descriptor_close_others(void);

/* pwrite(2), except that a write beyond the limit on file sizes (ulimit -f) does not raise SIGXFSZ:
 * it only fails with EFBIG. */
ssize_t descriptor_write(int fd, const void *bytes, size_t size, off_t offset);

/* What identifies a file, whatever its name is. */
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

/* Make CALL, again as long as a signal interrupts it, and put its result into RESULT: -1, with
 * errno set, if it fails. */
#define UNINTERRUPTED(result, call) \
	do \
		(result) = (call); \
	while ((result) < 0 && errno == EINTR)

int call_open(int directory, const char *name, int flags, mode_t mode);
int call_unlink(int directory, const char *name, int flags);

/* flock(2) with LOCK_EX and LOCK_NB, repeated while a signal interrupts it.  (A flock(2) that
 * sleeps must not be repeated: a signal has to end it.) */
int call_try_flock(int fd);

/* Rename FROM to TO; fails with EEXIST if TO exists, and with EINVAL or ENOSYS if the file system
 * or the kernel cannot do that. */
int rename_noreplace(int directory, const char *from, const char *to);

#endif
