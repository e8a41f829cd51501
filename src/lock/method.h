/* lock/method.h - what a way of locking must be able to do.
 *
 * A method knows one mechanism and nothing else: no time limits, no order among
 * waiters, no messages, no exit.  Those belong to lock.c and main.c. */
#ifndef SEMLOCK_LOCK_METHOD_H
#define SEMLOCK_LOCK_METHOD_H

#include <stdbool.h>

#include "report/error.h"

struct lock;
struct wait_options;
struct lock_info;

enum outcome {
	TAKEN, /* it is ours */
	BUSY,  /* it is somebody else's: ask again later; no error, and no words */
	AGAIN, /* open the lock anew, then ask again */
	FAILED /* it cannot work; ERROR says why */
};

/* Sleep in the kernel until it is free, or just try. */
enum wait { TRY, SLEEP };

enum {
	CAN_SHARE = 1,       /* -s */
	CAN_SLOTS = 2,       /* -j */
	CAN_RANGE = 4,       /* --start, --length */
	CAN_FD = 8,          /* lock a caller's descriptor */
	OWNED_BY_PROCESS = 16, /* the lock is semlock's own and dies with it: no child inherits it */
	LEAVES_RECORD = 32,    /* the lock is an entry in a directory, and its record names the
				* command: which is started, at a gate, before the lock is taken */
	NEEDS_INIT = 64,      /* --init: the lock must have been made once */
	BEATS = 128,           /* others take it for abandoned when it looks old: beat unasked */
	NEEDS_MONITOR = 256,    /* at the end it cannot be told any more who took it away */
	ON_SERVER = 512        /* LOCK is a URL; a helper waits for the lock, and keeps its lease */
};

struct method {
	const char *name; /* as typed after -m */
	unsigned can;
	const char *what; /* for --help: what it is, in a few words */

	/* How the file must be open to be locked: O_RDONLY or O_RDWR. */
	int (*access)(const struct lock *lock);

	/* Lock LOCK->fd.  With SLEEP, BUSY means that a signal ended the sleep. */
	enum outcome (*take)(struct lock *lock, enum wait wait, struct error *error);

	/* Unlock LOCK->fd, for every process that shares its description. */
	int (*drop)(struct lock *lock, struct error *error);

	/* The same for slot SLOT alone: TAKEN, BUSY or FAILED; NULL without CAN_SLOTS. */
	enum outcome (*take_slot)(struct lock *lock, unsigned slot, enum wait wait, struct error *error);
	int (*drop_slot)(struct lock *lock, unsigned slot);

	/* With LEAVES_RECORD, instead of opening the file that the name means, of unlocking
	 * and of closing it.  All of them are NULL without.
	 *
	 * open: look at the directory that the lock is to be in.  Nothing is made.
	 * prepare: make ready whatever must be there before the command is started, which
	 *	inherits it.  May be called again.
	 * idle: is it free, or its holder dead?
	 * current: does the lock's name still lead into the directory that was opened?
	 * owned: is it ours still, if it was taken?
	 * beat: give a sign of life, if it is.
	 * peek: who holds it, by what it shows; see methods/sight.h.
	 * listen: a descriptor that becomes readable when the lock may have changed; or -1.
	 * release: let go what is held, and undo what was prepared; notes LOCK->lost.  Copes
	 *	with any half-filled state. */
	int (*open)(struct lock *lock, struct error *error);
	int (*prepare)(struct lock *lock, struct error *error);
	bool (*idle)(struct lock *lock);
	bool (*current)(const struct lock *lock);
	bool (*owned)(struct lock *lock);
	void (*beat)(struct lock *lock);
	int (*inspect)(const struct lock *lock, struct lock_info *info, struct error *error);
	int (*listen)(struct lock *lock);
	void (*release)(struct lock *lock);

	/* With ON_SERVER, instead of all but release: have it waited for, within WAIT_OPTIONS, start
	 * the command up to its gate, and set LOCK->fd, which keeps the lock as long as anybody
	 * has it open.  TAKEN, BUSY or FAILED. */
	enum outcome (*await)(struct lock *lock, const struct wait_options *wait, struct error *error);
};

/* The method called NAME, or NULL. */
const struct method *method_named(const char *name);

/* The N-th method, from 0; NULL past the last. */
const struct method *method_nth(unsigned n);

#endif
