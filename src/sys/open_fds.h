/* SPDX-License-Identifier: MIT */
/* sys/open_fds.h - which processes have a file open, and what they have locked of it; and which
 * processes must not outlive a lock.
 *
 * /proc/locks names the process that took a lock.  That process may have ended while the lock lives
 * on in a descriptor that another process inherited: so read the descriptors of all processes. */
#ifndef SEMLOCK_SYS_OPEN_FDS_H
#define SEMLOCK_SYS_OPEN_FDS_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "sys/deadline.h"
#include "sys/files.h"

/* The kinds of lock that the kernel keeps on a file. */
enum { KIND_FLOCK = 1, KIND_OFD = 2, KIND_POSIX = 4 };

struct procfs_lock {
	unsigned kind;
	bool waiting; /* "->": the process waits for the lock */
	bool exclusive;
	long pid; /* who took it; -1: unknown (KIND_OFD); 0: in another PID namespace, or ended */
	unsigned major, minor;
	unsigned long long inode;
	long long first, last; /* LLONG_MAX: to the end of the file */
};

/* A read of /proc/locks returns whole lines, each shorter than 256 bytes, and at most PROCFS_PAGE
 * bytes.  So a read of less than PROCFS_PAGE_FILLED bytes has reached the end: another line would
 * have fitted. */
enum { PROCFS_PAGE = 4096, PROCFS_PAGE_FILLED = PROCFS_PAGE - 256 };

/* Open /proc/locks.  PAGE becomes the stream's buffer, with room for what the kernel returns in one
 * read; it must last until the stream is closed.  Read the list only for what fdinfo does not show:
 * each read stops all file locking on this machine, and the list may change between two reads.
 * Returns NULL with errno set if the list cannot be read. */
FILE *procfs_locks(char page[PROCFS_PAGE]);

/* Parse LINE of /proc/locks, or of /proc/PID/fdinfo/N with "lock:" before it.  Returns false for
 * anything else, such as a lease. */
bool procfs_lock_line(const char *line, struct procfs_lock *lock);

/* Do EARLIER and LATER, which were read one after the other for one file, show the same lock?  In
 * between, the process that took the lock may have ended: then LATER has PID 0. */
bool procfs_same_lock(const struct procfs_lock *earlier, const struct procfs_lock *later);

/* Fill FILE for NAME in DIRECTORY, without waiting for a network file system whose server does not
 * answer.  FLAGS: 0, AT_SYMLINK_NOFOLLOW or AT_EMPTY_PATH.  Returns false if it does not exist. */
bool open_fds_identify(int directory, const char *name, int flags, struct identity *file);

/* A descriptor for one of the files that are searched for, and one lock that it carries.  A
 * descriptor with two locks appears twice. */
struct open_fd {
	pid_t pid;
	pid_t thread; /* whose directory in /proc shows FD: process_thread_with_files() */
	int fd;
	struct identity identity;
	unsigned file; /* which of the files, from 0 */
	bool locked;   /* false: open, but nothing is locked through it */
	struct procfs_lock lock;
};

/* How complete a look was, best first. */
enum seen {
	SEEN_ALL,
	SEEN_NOT_ALL, /* some processes are hidden from this user; looking again does not help */
	SEEN_CUT,     /* the limit was reached before the end */
	SEEN_FAILED   /* no memory: the list is incomplete */
};

/* Set *SEEN to BY, if that is less complete. */
void seen_lessened(enum seen *seen, enum seen by);

struct open_fds {
	const struct identity *files; /* the NFILES files to look for */
	unsigned nfiles;
	struct allowance *limit; /* NULL: none */
	struct open_fd *list;
	size_t count;
	enum seen seen;
};

/* A walk over the descriptors of all processes, which several searches share.  Each search reads
 * anew which locks its own files carry.  All zero: the walk has not begun. */
struct fd_walk {
	int64_t piece; /* pause the walk after this many ns by the clock; 0: never */
	DIR *proc;     /* where to continue; NULL: not begun, or complete */
	bool whole;
	int64_t until; /* when its result is too old, on clock_now()'s clock */
	struct open_fds all;
};

/* Continue WALK by one piece, of at least one process.  Returns whether WALK is complete. */
bool fd_walk_go_on(struct fd_walk *walk);

/* Forget what WALK has found, so that the next search walks again.  Does nothing if WALK is
 * NULL. */
void fd_walk_drop(struct fd_walk *walk);

/* Add to OPEN_FDS the descriptors that any process has for its files, as WALK has found them, or
 * finds them now.  If WALK is NULL, walk for this search alone. */
void open_fds_find(struct open_fds *open_fds, struct fd_walk *walk);

/* Read anew what the descriptors in OPEN_FDS have locked, and drop those that are closed by now. */
void open_fds_refresh(struct open_fds *open_fds);

/* Add the descriptors of process PID alone. */
void open_fds_of(struct open_fds *open_fds, pid_t pid);

/* The same, for process_each(): CONTEXT is the struct open_fds.  Returns false when its limit is
 * reached, or without memory. */
bool open_fds_see(pid_t pid, void *context);

/* Free the list of OPEN_FDS, and clear OPEN_FDS. */
void open_fds_forget(struct open_fds *open_fds);

/* May this process have inherited a descriptor for FILE, other than the two of OWN (-1: none)?
 * Does not read /proc, but tries each number up to about a thousand.  If the process's table of
 * descriptors is larger than that, returns true. */
bool open_fds_may_inherit(const struct identity *file, const int own[2]);

/* Do descriptor A of process P and B of Q share one open file description?  1: yes; 0: no; -1: the
 * kernel does not say. */
int open_fds_same_description(pid_t p, int a, pid_t q, int b);

/* ---- the processes that must not outlive a lock: those that have its pipe open, and the
 * descendants of the process that started the command ---- */

struct pipe_holders {
	int pipe;       /* a descriptor of the pipe; -1: no pipe */
	pid_t ancestor; /* find its descendants too; 0: none */
	/* only those that descend from it through a child that started at this time or later, in
	 * process_stat()'s ticks */
	unsigned long long since;
	pid_t except; /* never this process or its descendants; 0: no exception */
	/* reap all children that have ended, except this one, which stays a zombie.  0: reap none;
	 * the caller calls pipe_holders_reap() */
	pid_t unreaped;
	pid_t refused; /* set to a process that this one may not signal */
};

/* Send SIGNO to the processes that HOLDERS describes, except this one; 0: only count them.  Returns
 * how many are alive or were reaped; 0 also without memory, or if /proc does not show this PID
 * namespace.  A process that is forked during the search may be missed: repeat the call until it
 * returns 0. */
size_t pipe_holders_signal(struct pipe_holders *holders, int signo);

/* Reap all children that have ended.  Returns whether there was one. */
bool pipe_holders_reap(void);

#endif
