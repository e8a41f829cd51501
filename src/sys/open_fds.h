/* SPDX-License-Identifier: MIT */
/* sys/open_fds.h - which processes have a file open, and what they have locked of it; and which
 * must not outlive a lock.
 *
 * /proc/locks names the process that took a lock.  That may have ended, while the lock lives on in
 * a descriptor that another process inherited: so each process's descriptors are read. */
#ifndef SEMLOCK_SYS_OPEN_FDS_H
#define SEMLOCK_SYS_OPEN_FDS_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "sys/deadline.h"

/* The kinds of lock that the kernel keeps on a file. */
enum { KIND_FLOCK = 1, KIND_OFD = 2, KIND_POSIX = 4 };

struct procfs_lock {
	unsigned kind;
	bool waiting; /* "->" */
	bool exclusive;
	long pid; /* the taker; -1: not told (KIND_OFD); 0: of another PID namespace, or ended */
	unsigned major, minor;
	unsigned long long inode;
	long long first, last; /* LLONG_MAX: to the end of the file */
};

/* The kernel gives lines, of less than 256 bytes, and whole ones alone: a read that gave less than
 * PROCFS_PAGE_FILLED gave all that there was. */
enum { PROCFS_PAGE = 4096, PROCFS_PAGE_FILLED = PROCFS_PAGE - 256 };

/* Open /proc/locks, buffered by PAGE, which must last until it is closed: as much as the kernel
 * gives in a read.  Each read stops all calls that lock a file on this machine, and between two the
 * list may change: read it only for what fdinfo does not tell.  NULL, with errno set: it cannot be
 * read. */
FILE *procfs_locks(char page[PROCFS_PAGE]);

/* A line of /proc/locks, or of /proc/PID/fdinfo/N with "lock:" before it.  Returns false for
 * anything else, such as a lease. */
bool procfs_lock_line(const char *line, struct procfs_lock *lock);

/* Is LATER the same lock as EARLIER, both of one file?  The taker of LATER may have ended since. */
bool procfs_same_lock(const struct procfs_lock *earlier, const struct procfs_lock *later);

/* A file, as stat(2) names it. */
struct identity {
	dev_t device;
	ino_t inode;
};

bool same_file(const struct identity *one, const struct identity *other);

/* Fill FILE for NAME in DIRECTORY, without waiting for a network file system's server that does not
 * answer.  FLAGS: 0, or AT_SYMLINK_NOFOLLOW.  Returns false if it is not there. */
bool open_fds_identify(int directory, const char *name, int flags, struct identity *file);

/* A descriptor on one of the files, and one lock that it carries; a descriptor that carries two is
 * there twice. */
struct open_fd {
	pid_t pid;
	int fd;
	struct identity identity;
	unsigned file; /* which of the files, from 0 */
	bool locked;   /* false: open, and nothing locked through it */
	struct procfs_lock lock;
};

/* How much of what was to be looked at has been; each is less than the one before it. */
enum seen {
	SEEN_ALL,
	SEEN_NOT_ALL, /* some processes may not be looked into; to look again does not help */
	SEEN_CUT,     /* the limit was reached: the rest was not looked for */
	SEEN_FAILED   /* no memory: the list is cut short */
};

/* *SEEN becomes BY, if that is less. */
void seen_lessened(enum seen *seen, enum seen by);

struct open_fds {
	const struct identity *files; /* those that are looked for, NFILES of them */
	unsigned nfiles;
	struct allowance *limit; /* NULL: none */
	struct open_fd *list;
	size_t count;
	enum seen seen;
};

/* A walk over all processes, for several searches, each of which reads anew what its files have
 * locked.  All zero: it has not begun. */
struct fd_walk {
	int64_t piece; /* ns of the clock for which it goes on at a time; 0: until it is whole */
	DIR *proc;     /* where it goes on; NULL: it has not begun, or is whole */
	bool whole;
	int64_t until; /* when it is too old, on clock_now()'s clock */
	struct open_fds all;
};

/* Go on with WALK, for a piece of it at least one process long.  Returns whether it is whole. */
bool fd_walk_go_on(struct fd_walk *walk);

/* Forget what WALK has found: the next search walks anew.  NULL: nothing. */
void fd_walk_drop(struct fd_walk *walk);

/* Add the descriptors of all processes; those that WALK has found, or finds now.  NULL: those of a
 * walk for this search alone. */
void open_fds_find(struct open_fds *open_fds, struct fd_walk *walk);

/* Read anew what the descriptors in OPEN_FDS have locked; those that are closed by now are left
 * out. */
void open_fds_refresh(struct open_fds *open_fds);

/* Add process PID's descriptors alone. */
void open_fds_of(struct open_fds *open_fds, pid_t pid);

void open_fds_forget(struct open_fds *open_fds);

/* May this process have FILE open by a descriptor that it has inherited, one that is neither of OWN
 * (-1: none)?  /proc is not asked; true as well if it would have to be: of a thousand descriptors.
 */
bool open_fds_may_inherit(const struct identity *file, const int own[2]);

/* Do descriptor A of process P and B of Q share one open file description?  1: yes; 0: no; -1: the
 * kernel does not tell. */
int open_fds_same_description(pid_t p, int a, pid_t q, int b);

/* ---- the processes that must not outlive a lock: those that have its pipe open, and the
 * descendants of the process that started the command ---- */

struct pipe_holders {
	int pipe;       /* a descriptor of the pipe; -1: no pipe */
	pid_t ancestor; /* the descendants of this process; 0: none */
	/* no child of ANCESTOR that started earlier: process_stat()'s ticks */
	unsigned long long since;
	pid_t except; /* never this process, nor its descendants; 0: no exception */
	/* this child stays a zombie, and all others are waited for; 0: no child is */
	pid_t unreaped;
	pid_t refused; /* filled: a process that this one may not signal */
};

/* Send SIGNO to all holders but this process; 0: only count.  Returns how many live, or have been
 * reaped.  A process that is forked during the search may be missed: call again until no process is
 * left, and none has been reaped. */
size_t pipe_holders_signal(struct pipe_holders *holders, int signo);

/* Reap all children that have ended.  Returns whether there was one. */
bool pipe_holders_reap(void);

#endif
