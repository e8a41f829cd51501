/* SPDX-License-Identifier: MIT */
/* lock/lock.h - a lock: what the user asked for, and what has become of it. */
#ifndef SEMLOCK_LOCK_LOCK_H
#define SEMLOCK_LOCK_LOCK_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sys/deadline.h"
#include "sys/files.h"
#include "lock/method.h"
#include "report/error.h"

enum lock_mode { EXCLUSIVE, SHARED };

/* How an owner (a holder or a waiter) holds or wants the lock. */
enum owner_mode { MODE_UNKNOWN, MODE_EXCLUSIVE, MODE_SHARED, MODE_SLOT };

/* The word for MODE in SEMLOCK_MODE, --log, --who and a helper's lines; NULL: not known. */
static inline const char *mode_text(enum owner_mode mode)
{
	return mode == MODE_EXCLUSIVE ? "exclusive"
	       : mode == MODE_SHARED  ? "shared"
	       : mode == MODE_SLOT    ? "slot"
	                              : NULL;
}

/* The most slots of one lock (-j). */
enum { SLOTS_MOST = 4096 };

/* While a process collects several slots (--take), it also holds this one.  Otherwise two processes
 * that each had a part of what they need would wait for each other forever. */
#define SLOT_OF_COLLECTOR ((unsigned)SLOTS_MOST + 1)

/* The bytes from this offset on are for semlock's own locks: no program has data there. */
#define BYTES_OF_DATA ((off_t)1 << 61)

/* Slot N of a flock is a record lock on byte FLOCK_FIRST_SLOT + N. */
#define FLOCK_FIRST_SLOT ((off_t)1 << 62)

struct range {
	off_t start;
	off_t length; /* bytes; 0: to the end of the file, however far it grows */
};

/* The command's process, for locks whose record must name it before the command runs.  All locks of
 * a run share this struct. */
struct child {
	pid_t pid;     /* 0: not started yet */
	bool inherits; /* it gets the locks' descriptors */
	/* the process that semlock's caller knows: this one, or the subreaper above it */
	pid_t semlock;
};

struct file_lock;
struct locksmith;

/* What the user asked for; constant.  A caller that needs a variant makes a copy, which must last
 * as long as its lock. */
struct lock_spec {
	const char *name; /* a path or URL; NULL: the caller's open descriptor FD */
	int fd;
	enum lock_mode mode;
	const struct method *method;
	unsigned slots; /* the most holders at once; 0: a plain lock */
	unsigned take;  /* slots for one holder; 0: one */
	struct range range;
	mode_t create_mode;  /* permissions of a file that semlock creates */
	bool exact_mode;     /* --mode: exactly these, whatever the umask is */
	bool to_be_removed;  /* remove the file at the end */
	bool init;           /* --init: create the lock file of -m rename if none exists */
	bool may_be_deleted; /* lock a caller's descriptor even if its file has no name any more */
	/* --name: no other user may take it, and its directory is created with the first lock in
	 * it */
	bool of_user;
	int64_t stale;    /* take it over after this many ns without a sign of life; 0: never */
	int64_t ttl;      /* ns of lease; 0: the server's default */
	char **command;   /* the command that runs under it, for --who; NULL: none */
	const char *note; /* why it is held, for people, as typed; NULL: none */
};

/* The mode in which SPEC asks for the lock. */
static inline enum owner_mode mode_asked(const struct lock_spec *spec)
{
	return spec->slots > 0 ? MODE_SLOT : spec->mode == SHARED ? MODE_SHARED : MODE_EXCLUSIVE;
}

/* What identifies an open lock: two locks with the same file and entry exclude each other, and
 * share a queue. */
struct lock_id {
	/* the locked file; for a lock that is a name, the directory it is in ... */
	struct identity file;
	const char *entry; /* ... and the name there; else NULL */
	uid_t owner;       /* who may take the lock: the file's owner and group ... */
	gid_t group;
	mode_t permissions; /* ... and its permissions, with the file type */
};

/* A lock's place among the locks of its set, and in its queue. */
struct lock_place {
	/* an earlier lock of its set (-f) is on the same file, and taken instead */
	bool covered;
	bool admitted;       /* we have had a place in the queue (wait_options.places) */
	bool queued;         /* at the last try there was a queue */
	bool unordered;      /* its queue cannot be used: the kernel decides the order */
	pid_t superseded_by; /* BUSY_SUPERSEDED: the process that took our place; 0: not known */
};

/* Why a lock is BUSY, and we do not wait for it, or wait no longer. */
enum busy_reason {
	BUSY_NOW,        /* wait_options.try_once */
	BUSY_TIMEOUT,    /* the deadline has passed */
	BUSY_SUPERSEDED, /* a later waiter has taken our place (wait_options.supersede) */
	BUSY_CROWDED,    /* all places of its queue are taken */
	/* this process has inherited the lock: the wait would never end */
	BUSY_INHERITED,
	BUSY_TOGGLED /* --toggle has ended the holder, and takes nothing */
};

/* How the lock was lost or released. */
struct lock_end {
	bool lost;      /* another process has taken it away ... */
	bool lost_said; /* ... and the user has been told */
	/* released, but files that the command put into the lock's directory (-m mkdir) are left */
	bool littered;
	/* 0, or why the release failed: an errno; EWOULDBLOCK: a stopped semlock is in the way */
	int stuck;
};

/* A set of slots. */
struct slots {
	unsigned count;
	unsigned char *bits; /* one bit for each slot; NULL: none has been tried */
};

/* What has become of the lock. */
struct lock {
	const struct lock_spec *spec;
	struct child *child; /* for methods that leave a record */
	int fd;              /* the open description that carries the lock, or -1 */
	int slot;            /* the slot held, from 0, or the first of them; -1: none */
	struct lock_id id;
	struct lock_place place;
	enum busy_reason busy; /* of the last attempt, if that was BUSY */
	struct lock_end end;

	/* The method's family uses one of these; the others stay empty. */
	struct {
		int access;         /* how FD is open: O_RDONLY, O_WRONLY or O_RDWR */
		bool made;          /* we have created the file */
		struct slots slots; /* the slots that we hold */
	} kernel;
	struct {
		int directory;           /* the directory that ID.entry is in, opened with O_PATH */
		struct file_lock *state; /* see methods/file/filemethods.h */
	} files;
	struct {
		struct locksmith *helper; /* the helper that holds the lock */
		long long token;          /* the fencing token; -1: none */
		char *text;               /* the helper's last line about the holder; NULL: none */
	} server;
};

/* A lock that is not open yet, for the spec ASKED_FOR. */
#define LOCK_OF(asked_for) ((struct lock){.spec = (asked_for), .fd = (asked_for)->fd, .slot = -1})

/* The value of --on-lost: a signal's number, this, or 0 without the option. */
enum { LOST_WARN = -1 };

/* Does STATUS, from stat(2), belong to LOCK's file (for a lock that is a name, to its
 * directory)? */
static inline bool lock_is_on(const struct lock *lock, const struct stat *status)
{
	return same_file(identity_of(status), lock->id.file);
}

/* Does LOCK's method have the flag CAN? */
static inline bool lock_can(const struct lock *lock, unsigned can)
{
	return method_can(lock->spec->method, can);
}

struct bytes {
	long long first, last; /* LLONG_MAX: to the end of the file */
};

/* The bytes that LOCK asks for, if its method locks ranges; with slots, a byte for each slot. */
static inline struct bytes bytes_of(const struct lock *lock)
{
	const struct lock_spec *spec = lock->spec;
	const long long length =
	    spec->slots > 0 ? (long long)spec->slots : (long long)spec->range.length;

	return (struct bytes){spec->range.start,
	    length == 0 ? LLONG_MAX : spec->range.start + length - 1};
}

/* Does LOCK ask for any of the bytes from FIRST to LAST?  (It does if its method locks whole
 * files.) */
static inline bool lock_overlaps(const struct lock *lock, long long first, long long last)
{
	const struct bytes bytes = bytes_of(lock);

	return !lock_can(lock, CAN_RANGE) || (first <= bytes.last && last >= bytes.first);
}

/* The command, while it runs under COUNT locks. */
struct guard {
	struct lock *locks;
	unsigned count;
	const char *label; /* what messages call the first lock */
	pid_t command;
	int on_lost; /* LOST_WARN, or a signal's number; 0: neither */
	/* called by a thread: tell the user that LOCK is lost */
	void (*report)(const struct lock *lock);
};

/* What to do about a busy lock. */
enum when_busy {
	WAIT,
	WAIT_PAST_QUEUE, /* as with wait_options.past_queue */
	GIVE_UP          /* give up with BUSY_INHERITED */
};

/* Does the caller signal the holder of a busy lock, to end it (taking.h, STEP_HELD)? */
enum preempt {
	PREEMPT_NOT,
	PREEMPT_REPLACE, /* with a ticket before all ordinary ones (queue.h) */
	PREEMPT_TOGGLE   /* without a ticket: when the holder has ended, the waiters get the lock */
};

/* How long to wait, and behind whom. */
struct wait_options {
	struct deadline deadline; /* if it has passed already: do not wait */
	bool try_once;
	unsigned places; /* wait only if fewer others than this wait; 0: no limit */
	bool past_queue; /* wait for no earlier waiter, but have a place in the queue */
	bool first;      /* a place before all ordinary waiters */
	/* earlier waiters with this give up for us, and we give up for a later one */
	bool supersede;
	enum preempt preempt;
};

/* Why a lock that is not taken within WAIT is busy. */
static inline enum busy_reason busy_within(const struct wait_options *wait)
{
	return wait->try_once ? BUSY_NOW : BUSY_TIMEOUT;
}

#endif
