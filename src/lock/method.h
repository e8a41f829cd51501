/* lock/method.h - what a way of locking must be able to do.
 *
 * A method knows one mechanism and nothing else: no time limits, no order among waiters, no messages,
 * no exit. */
#ifndef SEMLOCK_LOCK_METHOD_H
#define SEMLOCK_LOCK_METHOD_H

#include <stdbool.h>

#include "report/error.h"

struct lock;
struct wait_options;
struct lock_info;
struct object;

enum outcome {
	TAKEN, /* it is ours */
	BUSY,  /* another process holds it: not an error */
	AGAIN, /* open the lock anew, then ask again */
	FAILED = -1 /* ERROR says why: error_set() returns it */
};

/* With SLEEP: sleep in the kernel until the lock is free. */
enum wait { TRY, SLEEP };

enum {
	CAN_SHARE = 1,         /* -s */
	CAN_SLOTS = 2,         /* -j */
	CAN_RANGE = 4,         /* --start, --length */
	CAN_FD = 8,            /* lock a caller's descriptor */
	OWNED_BY_PROCESS = 16, /* the lock is semlock's own and dies with it: no child inherits it */
	NEEDS_INIT = 32,       /* the lock must have been made once, by --init */
	BEATS = 64             /* other programs take over a lock that looks old: heartbeat unasked */
};

/* A kernel lock, of LOCK->fd. */
struct kernel_method {
	/* How the file must be opened: O_RDONLY or O_RDWR. */
	int (*access)(const struct lock *lock);
	/* With SLEEP, BUSY means that a signal ended the sleep. */
	enum outcome (*take)(struct lock *lock, enum wait wait, struct error *error);
	/* Unlock, for every process that shares the open description; 0, or -1 with ERROR filled. */
	int (*drop)(struct lock *lock, struct error *error);
	/* As take and drop, for slot SLOT alone; never AGAIN. */
	enum outcome (*take_slot)(struct lock *lock, unsigned slot, enum wait wait, struct error *error);
	void (*drop_slot)(struct lock *lock, unsigned slot);
};

/* A lock made of files: an entry in a directory.  Its record names the command, which is started, up to its
 * start barrier, before the lock is taken. */
struct file_method {
	const struct object *object; /* what is made: methods/file/lockdir.h */
	/* Open the directory of the lock.  Nothing is made. */
	int (*open)(struct lock *lock, struct error *error);
	/* Make what must be there before the command is started, which inherits it.  May be called again.  NULL:
	 * nothing to make. */
	int (*prepare)(struct lock *lock, struct error *error);
	/* As that of a kernel lock. */
	enum outcome (*take)(struct lock *lock, enum wait wait, struct error *error);
	/* Unlock, if the lock was taken; set LOCK->lost. */
	void (*drop)(struct lock *lock);
	/* Is the lock free, or its holder dead? */
	bool (*idle)(struct lock *lock);
	/* Does the lock's name still lead into the directory that was opened? */
	bool (*current)(const struct lock *lock);
	/* If the lock was taken, is it still ours? */
	bool (*owned)(struct lock *lock);
	/* If so, give a sign of life. */
	void (*beat)(struct lock *lock);
	/* Fill INFO with what the lock says of its holder. */
	int (*inspect)(const struct lock *lock, struct lock_info *info, struct error *error);
	/* Drop, and undo prepare.  Copes with any half-filled state. */
	void (*release)(struct lock *lock);
};

/* A lock on a server: LOCK is a URL; a helper waits for the lock, and renews its lease. */
struct server_method {
	/* Wait for the lock, within WAIT; start the command, up to its start barrier; and set LOCK->fd: the lock
	 * is held as long as any process has it open.  Never AGAIN. */
	enum outcome (*await)(struct lock *lock, const struct wait_options *wait, struct error *error);
	/* As that of a lock made of files. */
	void (*release)(struct lock *lock);
};

struct method {
	const char *name; /* as typed after -m */
	unsigned can;
	/* One of these, which says what kind of lock it is; the others are NULL. */
	const struct kernel_method *kernel;
	const struct file_method *file;
	const struct server_method *server;
};

/* The method called NAME, or NULL. */
const struct method *method_named(const char *name);

/* The N-th method, from 0; NULL past the last. */
const struct method *method_nth(unsigned n);

#endif
