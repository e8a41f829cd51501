/* SPDX-License-Identifier: MIT */
/* sys/descriptor.h - descriptors that the program opens for itself. */
#ifndef SEMLOCK_SYS_DESCRIPTOR_H
#define SEMLOCK_SYS_DESCRIPTOR_H

#include <stddef.h>
#include <sys/types.h>

/* Move FD, just opened, above standard error: if the caller has closed 0, 1 or 2, a file opened here must
 * not become the command's standard input or output.  Returns the new descriptor, closed at exec, or
 * -1 with errno set; then FD is closed.  -1, as of a failed open(2), stays -1, and errno as it is. */
int descriptor_above_standard(int fd);

/* A pipe, both ends as above.  Returns 0, or -1 with errno set; then neither is open. */
int descriptor_pipe(int ends[2]);

/* The same for two connected stream sockets. */
int descriptor_socket_pair(int ends[2]);

/* Close all above standard error, in a process that outlives its parent: a reader of one of the caller's
 * pipes must not wait for it. */
void descriptor_close_others(void);

/* pwrite(2), with EFBIG for a file over the limit of its size (ulimit -f), and no SIGXFSZ. */
ssize_t descriptor_write(int fd, const void *bytes, size_t size, off_t offset);

#endif
