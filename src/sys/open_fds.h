/* sys/open_fds.h - which processes have a file open, and what they have locked of it.
 *
 * The kernel's list of locks names the process that asked for a lock, and that may have
 * ended long ago, with the lock living on in a descriptor that others inherited.  So the
 * descriptors themselves are looked at, process by process. */
#ifndef SEMLOCK_SYS_OPEN_FDS_H
#define SEMLOCK_SYS_OPEN_FDS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "sys/proc.h"

/* A descriptor on one of the files, and one lock that it carries; a descriptor that carries
 * two is there twice. */
struct open_fd {
	pid_t pid;
	int fd;
	unsigned file; /* which of the files, from 0 */
	bool locked;   /* false: open, and nothing locked through it */
	struct procfs_lock lock;
};

struct open_fds {
	struct open_fd *list;
	size_t count;
	bool blind;  /* there were processes that we may not look into */
	bool failed; /* no memory: the list is cut short */
};

/* Which file a descriptor is: what stat(2) says of it. */
struct identity {
	dev_t device;
	ino_t inode;
};

/* Look through all processes for descriptors on the COUNT files at FILES. */
void open_fds_find(struct open_fds *open_fds, const struct identity *files, unsigned count);

/* The same, looking through process PID alone, and adding to what OPEN_FDS has. */
void open_fds_of(struct open_fds *open_fds, pid_t pid, const struct identity *files, unsigned count);

void open_fds_forget(struct open_fds *open_fds);

/* Do descriptor A of process P and B of Q share one open file description?  1 yes, 0 no,
 * -1 the kernel does not say. */
int open_fds_same_description(pid_t p, int a, pid_t q, int b);

#endif
