/* SPDX-License-Identifier: MIT */
/* sys/proc.h - the text of /proc, parsed.  These functions open nothing: each takes a line, or a file's
 * contents. */
#ifndef SEMLOCK_SYS_PROC_H
#define SEMLOCK_SYS_PROC_H

#include <stdbool.h>
#include <sys/types.h>

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

/* A line of /proc/locks, or of /proc/PID/fdinfo/N with "lock:" before it.  Returns false for
 * anything else, such as a lease. */
bool procfs_lock_line(const char *line, struct procfs_lock *lock);

/* Is LATER the same lock as EARLIER, both of one file?  The taker of LATER may have ended since. */
bool procfs_same_lock(const struct procfs_lock *earlier, const struct procfs_lock *later);

struct procfs_stat {
	char name[32]; /* of the program, cut by the kernel after 15 bytes */
	char state;    /* see procfs_ended() */
	pid_t parent;
	unsigned long long started; /* clock ticks after boot */
};

/* /proc/PID/stat.  The program's name may hold anything, ") R 1 " included. */
bool procfs_stat(const char *text, struct procfs_stat *stat);

/* Is STATE that of a process that has ended, with all its threads?  kill(2) succeeds for a zombie, too. */
bool procfs_ended(char state);

/* The effective user of /proc/PID/status, and into REAL the real one; both (uid_t)-1 if
 * missing. */
uid_t procfs_user(const char *text, uid_t *real);

/* "mnt_id:" of /proc/PID/fdinfo/N; -1 if missing. */
int procfs_mount_id(const char *text);

struct procfs_mount {
	int id;
	unsigned major, minor; /* of the file system, as /proc/locks names it */
	char point[256];       /* the mount point */
	char type[64];         /* ext4, nfs4 ... */
	char source[256];
	char options[1024];    /* of the mount, then of the file system */
};

/* A line of /proc/self/mountinfo. */
bool procfs_mount_line(const char *line, struct procfs_mount *mount);

#endif
