/* sys/proc.h - what /proc says, read from its text.  These functions open nothing: each takes
 * a line, or a file's contents, and says what it means. */
#ifndef SEMLOCK_SYS_PROC_H
#define SEMLOCK_SYS_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The kinds of lock that the kernel keeps on a file. */
enum { KIND_FLOCK = 1, KIND_OFD = 2, KIND_POSIX = 4 };

struct procfs_lock {
	unsigned kind;
	bool waiting; /* "->": asked for, not had */
	bool exclusive;
	long pid; /* who asked for it; -1: the kernel does not say (KIND_OFD); 0: not of our
		     PID namespace */
	unsigned major, minor;
	unsigned long long inode;
	long long first, last; /* LLONG_MAX: to the end of the file */
};

/* A line of /proc/locks, or of /proc/PID/fdinfo/N with "lock:" before it.  Returns false when
 * it is anything else, a lease for instance. */
bool procfs_lock_line(const char *line, struct procfs_lock *lock);

struct procfs_stat {
	char name[32]; /* of the program, cut by the kernel after 15 bytes */
	char state;    /* see procfs_ended() */
	pid_t parent;
	unsigned long long started; /* clock ticks after boot */
};

/* /proc/PID/stat.  The program's name may hold anything, ") R 1 " included. */
bool procfs_stat(const char *text, struct procfs_stat *stat);

/* Is STATE that of a process that has ended, with all its threads?  A zombie answers kill(2) as the
 * living do, and holds nothing. */
bool procfs_ended(char state);

/* The effective user of /proc/PID/status, and into REAL the real one; both (uid_t)-1 when it does
 * not say. */
uid_t procfs_user(const char *text, uid_t *real);

/* "mnt_id:" of /proc/PID/fdinfo/N; -1 when it does not say. */
int procfs_mount_id(const char *text);

struct procfs_mount {
	int id;
	unsigned major, minor; /* of the file system, as /proc/locks names it */
	char point[256];       /* where it is mounted */
	char type[64];         /* ext4, nfs4 ... */
	char source[256];
	char options[1024];    /* of the mount, then of the file system */
};

/* A line of /proc/self/mountinfo. */
bool procfs_mount_line(const char *line, struct procfs_mount *mount);

#endif
