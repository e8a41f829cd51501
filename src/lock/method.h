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

enum outcome {
	TAKEN, /* it is ours */
	BUSY,  /* another process holds it: not an error */
	AGAIN, /* open the lock anew, then ask again */
	FAILED /* ERROR says why */
};

/* With SLEEP: sleep in the kernel until the lock is free. */
enum wait { TRY, SLEEP };

enum {
	CAN_SHARE = 1,         /* -s */
	CAN_SLOTS = 2,         /* -j */
	CAN_RANGE = 4,         /* --start, --length */
	CAN_FD = 8,            /* lock a caller's descriptor */
	OWNED_BY_PROCESS = 16, /* the lock is semlock's own and dies with it: no child inherits it */
	LEAVES_RECORD = 32,    /* the lock is an entry in a directory.  Its record names the command, which
				* is started, up to its start barrier, before the lock is taken */
	NEEDS_INIT = 64,       /* the lock must have been made once, by --init */
	BEATS = 128,           /* other programs take over a lock that looks old: heartbeat unasked */
	NEEDS_MONITOR = 256,   /* a loss cannot be detected at release: monitor while held */
	ON_SERVER = 512        /* LOCK is a URL; a helper waits for the lock, and renews its lease */
};

struct method {
	const char *name; /* as typed after -m */
	unsigned can;
	const char *what; /* for --help, in a few words */

	/* A kernel lock, of LOCK->fd; the last two with CAN_SLOTS, take, drop and owned also with LEAVES_RECORD.
	 *
	 * access: how the file must be opened: O_RDONLY or O_RDWR.
	 * take: with SLEEP, BUSY means that a signal ended the sleep.
	 * drop: unlock, for every process that shares the open description; 0, or -1 with ERROR filled.
	 * owned: if the lock was taken, is it still ours?
	 * take_slot, drop_slot: the same for slot SLOT alone; never AGAIN. */
	int (*access)(const struct lock *lock);
	enum outcome (*take)(struct lock *lock, enum wait wait, struct error *error);
	int (*drop)(struct lock *lock, struct error *error);
	bool (*owned)(struct lock *lock);
	enum outcome (*take_slot)(struct lock *lock, unsigned slot, enum wait wait, struct error *error);
	int (*drop_slot)(struct lock *lock, unsigned slot);

	/* A lock made of files, with LEAVES_RECORD.
	 *
	 * open: open the directory of the lock.  Nothing is made.
	 * prepare: make what must be there before the command is started, which inherits it.  May be
	 *	called again.  NULL: nothing to make.
	 * idle: is the lock free, or its holder dead?
	 * current: does the lock's name still lead into the directory that was opened?
	 * beat: if so, give a sign of life.
	 * inspect: fill INFO with what the lock says of its holder.
	 * listen: a descriptor that becomes readable when the lock may have changed; or -1.
	 * release: unlock, and undo prepare; set LOCK->lost.  Copes with any half-filled state. */
	int (*open)(struct lock *lock, struct error *error);
	int (*prepare)(struct lock *lock, struct error *error);
	bool (*idle)(struct lock *lock);
	bool (*current)(const struct lock *lock);
	void (*beat)(struct lock *lock);
	int (*inspect)(const struct lock *lock, struct lock_info *info, struct error *error);
	int (*listen)(struct lock *lock);
	void (*release)(struct lock *lock);

	/* A lock on a server, with ON_SERVER; release as above, and nothing else.
	 *
	 * await: wait for the lock, within WAIT; start the command, up to its start barrier; and set
	 *	LOCK->fd: the lock is held as long as any process has it open.  Never AGAIN. */
	enum outcome (*await)(struct lock *lock, const struct wait_options *wait, struct error *error);
};

/* The method called NAME, or NULL. */
const struct method *method_named(const char *name);

/* The N-th method, from 0; NULL past the last. */
const struct method *method_nth(unsigned n);

#endif
