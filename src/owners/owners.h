/* SPDX-License-Identifier: MIT */
/* owners/owners.h - the holders of a lock, and its waiters.
 *
 * The search takes no lock and disturbs no process.  A kernel lock has no record: all that is known
 * of it comes from /proc, and what /proc does not show is said to be unseen, never guessed. */
#ifndef SEMLOCK_OWNERS_OWNERS_H
#define SEMLOCK_OWNERS_OWNERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lock/lock.h"
#include "methods/file/process_alive.h"
#include "report/error.h"
#include "sys/open_fds.h"
#include "sys/process.h"

/* A process through which a lock is held: most often semlock or its command, which share it. */
struct member {
	pid_t pid;
	int fd; /* -1: not known */
};

/* Why a record is no proof of its lock's holder. */
enum doubt {
	DOUBT_NONE,
	DOUBT_HOST,      /* on another host */
	DOUBT_MACHINE,   /* the same, and no more is known (a kernel lock on NFS) */
	DOUBT_NAMESPACE, /* in another PID namespace, or hidden from this one */
	DOUBT_NOBODY,    /* the record names no process */
	DOUBT_RANGE,     /* its PID is higher than kernel.pid_max */
	DOUBT_ILLEGIBLE, /* the record may not be read */
	DOUBT_FLOCK,     /* its process has ended, and another has the lock under flock(2) */
	DOUBT_OWNER,     /* another user owns the lock, or may write to it */
	DOUBT_NUMBER     /* the PID alone is recorded, and may be another process's by now */
};

struct owner {
	bool waits;
	enum verdict verdict; /* DEAD and UNKNOWN: of a lock made of files, by its record */
	enum doubt doubt;     /* the reason for UNKNOWN; with ALIVE, why no signal may be sent */
	const char *method;   /* "flock", "ofd", "posix" ... */
	unsigned kind;        /* KIND_* of sys/open_fds.h; 0: no kernel lock */
	enum { MODE_UNKNOWN, MODE_EXCLUSIVE, MODE_SHARED, MODE_SLOT } mode;
	int slot;              /* with MODE_SLOT; -1: not known */
	long long first, last; /* the bytes of an fcntl lock; LLONG_MAX: to the end */

	/* If the holder is semlock or flock(1): the command that it runs.  pid 0: the process cannot be seen;
	 * then TAKER, if not 0, is the process that once took the lock. */
	struct process process;
	pid_t supervisor; /* semlock or flock(1), waiting for the command to end; 0: none */
	pid_t taker;
	char host[65]; /* "": this one */

	int64_t since;    /* nanoseconds after 1970; 0: not known */
	int64_t touched;  /* the last sign of life in a lock made of files; 0: none */
	bool since_exact; /* SINCE is when the lock, or the wait, began; else when the process did */

	struct member *members;
	size_t nmembers;
};

struct owners {
	struct owner *list; /* the holders, then the waiters in the order of their turns */
	size_t count;
	size_t holders; /* the dead included: see owners_held() */
	bool unseen;    /* there are owners whose process cannot be seen */
	bool failed;    /* no memory: the list is cut short */
};

/* Does a process hold the lock, as far as is known?  The dead hold nothing. */
bool owners_held(const struct owners *found);

/* The kinds of kernel lock that keep LOCK's method from its lock. */
unsigned owners_kinds(const struct lock *lock);

/* Append an owner, all zero.  Returns NULL, and FOUND has failed, when there is no memory. */
struct owner *owners_add(struct owners *found);

/* Note that OWNER's lock is held through process PID, too, by its descriptor FD (-1: not known).
 * Without memory, FOUND has failed. */
void owners_join(struct owners *found, struct owner *owner, pid_t pid, int fd);

/* Is OWNER's lock held through process PID? */
bool owner_has(const struct owner *owner, pid_t pid);

/* Does OWNER's lock keep LOCK from being taken? */
bool owner_conflicts(const struct owner *owner, const struct lock *lock);

/* Of the holders, keep those for which LOCK may have to wait. */
void owners_keep_overlapping(struct owners *found, const struct lock *lock);

/* Where a holder is a semlock --hold, name the process that it holds the lock for; where it is this process,
 * which is the holder's command, the process that supervises it.  For display alone. */
void owners_name_callers(struct owners *found);

void owners_drop(struct owners *found, size_t i);

/* Set OWNER's method, mode, slot and bytes from LOCK, a line of /proc. */
void owner_describe(struct owner *owner, const struct procfs_lock *lock);

/* Is LOCK one of KINDS?  A slot of a flock is a record lock, and counts as a flock. */
bool owners_count_lock(const struct procfs_lock *lock, unsigned kinds);

void owners_forget(struct owners *found);

#endif
