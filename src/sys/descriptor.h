/* sys/descriptor.h - small things about descriptors. */
#ifndef SEMLOCK_SYS_DESCRIPTOR_H
#define SEMLOCK_SYS_DESCRIPTOR_H

#include <stddef.h>
#include <sys/types.h>

/* Move FD, fresh from an open, above standard error, whatever was closed when we were
 * started; what we open must not become somebody's standard input or output.  Closed at
 * exec, like FD.  Returns the new descriptor, or -1 with errno set, and FD is closed. */
int descriptor_above_standard(int fd);

/* A pipe, both ends as above.  Returns 0, or -1 with errno set, and nothing is open. */
int descriptor_pipe(int ends[2]);

/* Close all above standard error.  For a process that outlives us: whoever waits for a descriptor of
 * the caller's to be closed must not wait for it. */
void descriptor_close_others(void);

/* pwrite(2) at OFFSET, where a limit to the size of files (ulimit -f) is an error, EFBIG, and not
 * the end of us by SIGXFSZ. */
ssize_t descriptor_write(int fd, const void *bytes, size_t size, off_t offset);

#endif
