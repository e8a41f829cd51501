/* SPDX-License-Identifier: MIT */
/* lock/method.h - what a way of locking must be able to do.
 *
 * A method knows one mechanism and nothing else: no time limits, no order among waiters (except on
 * a server, whose helper has both), no messages, no exit. */
#ifndef SEMLOCK_LOCK_METHOD_H
#define SEMLOCK_LOCK_METHOD_H

#include <stdbool.h>

#include "report/error.h"

struct lock;
struct wait_options;
struct lock_info;
struct guard;
struct object;

enum outcome {
	TAKEN, /* we hold it */
	BUSY,  /* another process holds it: not an error */
	AGAIN, /* open the lock anew, then try again */
	/* the record must name the command's process: start it, set LOCK->child->pid, try again */
	NEEDS_CHILD,
	WAITS,      /* only from ask(): busy, and the wait begins; call ask() again */
	FAILED = -1 /* ERROR is filled; error_set() returns this */
};

/* With SLEEP: sleep in the kernel until the lock is free. */
enum wait { TRY, SLEEP };

enum {
	CAN_SHARE = 1, /* -s */
	CAN_SLOTS = 2, /* -j */
	CAN_RANGE = 4, /* --start, --length */
	CAN_FD = 8,    /* lock a caller's descriptor */
	CAN_MODE = 16, /* --mode */
	/* the lock belongs to semlock's process and ends with it: no child inherits it */
	OWNED_BY_PROCESS = 32,
	NEEDS_INIT = 64, /* the lock must have been made once, by --init */
	/* other programs take over a lock file that looks old: always renew its time stamp */
	BEATS = 128
};

/* What frees the lock when its holder dies.  That also decides how a holder is found, and how the
 * lock is kept alive and inherited. */
enum family {
	/* the kernel, when the last process that has it open ends: nothing is left to release */
	OF_KERNEL,
	/* the next waiter: a name in a directory outlives its holder, and says who created it */
	OF_FILES,
	ON_SERVER /* the server, when the helper has been silent for longer than its lease */
};

/* One table for every kind of lock.  Functions that return int return 0, or -1 with ERROR
 * filled. */
struct method {
	const char *name; /* as typed after -m; a URL's scheme */
	enum family family;
	unsigned can; /* CAN_SHARE, ... */

	/* ON_SERVER: ask the server for LOCK, within WAIT, or go on after WAITS or NEEDS_CHILD.
	 * All other locks are opened and taken by the functions below. */
	enum outcome (
	    *ask)(struct lock *lock, const struct wait_options *wait, struct error *error);
	/* Release LOCK, if it is taken, and close it (not a caller's descriptor); a process that
	 * inherited its descriptor may still hold the lock.  Sets LOCK->end, unless OF_KERNEL.  For
	 * a server, the call may take as long as the lease.  LOCK may be only half filled in. */
	void (*release)(struct lock *lock);
	/* Why LOCK was not released: LOCK->end.stuck, in words. */
	const char *(*stuck_reason)(const struct lock *lock);

	/* Not OF_KERNEL: keep the locks of GUARD alive until unguard(), which is called after the
	 * command's end and sets LOCK->end.lost.  Returns 0; 1 with ERROR filled: the locks are not
	 * watched, but the command may run; -1 with ERROR filled: the command must not run. */
	int (*guard)(const struct guard *guard, struct error *error);
	void (*unguard)(void);

	/* The rest is not for ON_SERVER. */

	/* Open what LOCK is taken on, and note its identity.  Creates a kernel lock's file; nothing
	 * else is created or taken. */
	int (*open)(struct lock *lock, struct error *error);
	/* Take LOCK.  With SLEEP, BUSY means that a signal ended the sleep. */
	enum outcome (*take)(struct lock *lock, enum wait wait, struct error *error);
	/* Unlock, also for all processes that share the open file description; LOCK stays open. */
	int (*drop)(struct lock *lock, struct error *error);
	/* Is LOCK free?  Returns TAKEN if so, or if its holder is dead; LOCK is not kept. */
	enum outcome (*idle)(struct lock *lock, struct error *error);
	/* Does LOCK's name still mean what was opened? */
	bool (*current)(const struct lock *lock);
	/* If LOCK was taken, is it still ours? */
	bool (*owned)(struct lock *lock);

	/* CAN_SLOTS: like take and drop, for slot SLOT alone; never AGAIN. */
	enum outcome (
	    *take_slot)(struct lock *lock, unsigned slot, enum wait wait, struct error *error);
	void (*drop_slot)(struct lock *lock, unsigned slot);
	/* OF_KERNEL: how the file must be opened: O_RDONLY, O_WRONLY or O_RDWR. */
	int (*access)(const struct lock *lock);
	/* OF_KERNEL: remove the file of the released LOCK; false: it is not empty, and stays. */
	bool (*remove)(struct lock *lock);

	/* OF_FILES.  OBJECT: what is created (methods/file/filemethods.h).  prepare(): create what
	 * the command inherits, before the command is started; may be called again.  inspect():
	 * read what the record says about the holder. */
	const struct object *object;
	int (*prepare)(struct lock *lock, struct error *error);
	int (*inspect)(const struct lock *lock, struct lock_info *info, struct error *error);
};

/* Does METHOD have the flag CAN, one of CAN_SHARE, ...? */
static inline bool method_can(const struct method *method, unsigned can)
{
	return (method->can & can) != 0;
}

#endif
