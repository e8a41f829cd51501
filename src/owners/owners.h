/* owners/owners.h - who holds a lock, and who waits for it.
 *
 * Nothing is taken and nobody is disturbed.  A kernel lock keeps no record: what is said here
 * comes from /proc, and what /proc does not let us see is said to be unseen, never guessed. */
#ifndef SEMLOCK_OWNERS_OWNERS_H
#define SEMLOCK_OWNERS_OWNERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "methods/file/process_alive.h"
#include "lock/lock.h"
#include "sys/process.h"
#include "report/error.h"

/* Who takes part in a lock: most often a watcher and its command, which share it. */
struct member {
	pid_t pid;
	int fd;
};

/* Why the holder of a lock made of files cannot be told from another. */
enum doubt {
	DOUBT_NONE,
	DOUBT_HOST,      /* on another host */
	DOUBT_NAMESPACE, /* in another PID namespace, or what this one cannot see into */
	DOUBT_NOBODY,    /* the lock names no process */
	DOUBT_RANGE,     /* its number is higher than any of this system's */
	DOUBT_ILLEGIBLE, /* we may not read it */
	DOUBT_FLOCK,     /* it names somebody dead, and somebody else has it under flock(2) */
	DOUBT_OWNER,     /* another user owns the lock, or may write to it */
	DOUBT_NUMBER     /* it names a number, which may have become another process's */
};

struct owner {
	bool waits;
	enum verdict verdict; /* DEAD and UNKNOWN: of a lock made of files, by its record */
	enum doubt doubt;     /* UNKNOWN for this reason; or ALIVE, if it is that process */
	const char *method; /* flock, ofd, posix ... */
	unsigned kind;      /* the kernel's name for that; 0: a lock of another making */
	enum { MODE_UNKNOWN, MODE_EXCLUSIVE, MODE_SHARED, MODE_SLOT } mode;
	int slot;              /* with MODE_SLOT; -1: not known */
	long long first, last; /* the bytes, for fcntl locks; LLONG_MAX: to the end */

	/* The process: the command where semlock or flock(1) watches over one.  pid 0: it
	 * cannot be seen, and then TAKER, if not 0, is the process that once took the lock. */
	struct process process;
	pid_t supervisor; /* semlock or flock(1), waiting for the command to end; 0: none */
	bool lets_go;  /* the command has ended, PROCESS is its semlock, and about to let go */
	pid_t taker;
	char host[65]; /* "": this one */

	int64_t since;    /* nanoseconds after 1970; 0: not known */
	int64_t touched;  /* the last sign of life in a lock made of files; 0: there are none */
	bool since_exact; /* since then it holds or waits; otherwise since then the process runs,
			     and the lock came later */

	struct member *members; /* everybody through whom the lock is held */
	size_t nmembers;
};

struct owners {
	struct owner *list; /* first who holds, then who waits, in the order of their turns */
	size_t count, holders; /* the dead among these are no holders any more: see owners_held */
	bool unseen; /* some of them are processes that we may not look into */
	bool failed; /* no memory: some are missing */
};

/* Does anybody hold it, as far as can be told?  The dead do not. */
bool owners_held(const struct owners *found);

/* The kinds of kernel lock that keep LOCK's method from its lock. */
unsigned owners_kinds(const struct lock *lock);

/* Add room for one more at the end of the list, all zero; NULL when there is no memory. */
struct owner *owners_add(struct owners *found);

/* It is held through process PID, too, by its descriptor FD (-1: which one is not known).  Without
 * memory, FOUND has failed. */
void owners_join(struct owners *found, struct owner *owner, pid_t pid, int fd);

/* Is it held through process PID? */
bool owner_has(const struct owner *owner, pid_t pid);

/* Has OWNER bytes that LOCK is to have?  (A lock that has no ranges is all of them.) */
bool owner_meets(const struct owner *owner, const struct lock *lock);

/* Does what OWNER holds keep LOCK from being taken? */
bool owner_hinders(const struct owner *owner, const struct lock *lock);

/* Of those who hold, keep whom LOCK can have to wait for: not those of other bytes. */
void owners_keep_meeting(struct owners *found, const struct lock *lock);

/* Where a holder is a semlock --hold, name the process that it holds the lock for.  For display:
 * that process is no member, and signalling it frees nothing. */
void owners_name_callers(struct owners *found);

/* Remove the I-th. */
void owners_drop(struct owners *found, size_t i);

/* Set OWNER's method, mode, slot and bytes as LOCK, from /proc, has them. */
void owner_describe(struct owner *owner, const struct procfs_lock *lock);

/* Does this kernel lock count among KINDS?  A slot of a flock is a record lock, and counts as
 * a flock. */
bool owners_count_lock(const struct procfs_lock *lock, unsigned kinds);

void owners_forget(struct owners *found);

#endif
