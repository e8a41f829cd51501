/* SPDX-License-Identifier: MIT */
/* lock/lock.h - a lock: what was asked for, and what has come of it. */
#ifndef SEMLOCK_LOCK_LOCK_H
#define SEMLOCK_LOCK_LOCK_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sys/deadline.h"
#include "lock/method.h"
#include "report/error.h"

enum lock_mode { EXCLUSIVE, SHARED };

/* The most slots of one lock (-j). */
enum { SLOTS_MOST = 4096 };

/* A process that collects several slots (--take) holds this one meanwhile: two processes that each
 * had a part of what they need would wait for each other for ever. */
#define SLOT_OF_COLLECTOR ((unsigned)SLOTS_MOST + 1)

/* The bytes from here on are semlock's own: no other program has data there. */
#define BYTES_OF_DATA ((off_t)1 << 61)

/* Slot N of a flock is a record lock on byte FLOCK_FIRST_SLOT + N. */
#define FLOCK_FIRST_SLOT ((off_t)1 << 62)

struct range {
	off_t start;
	off_t length; /* bytes; 0: to the end of the file, however far it grows */
};

/* The command, as far as a lock needs it: a record names the command before the command may run.
 * One for all locks of a run. */
struct child {
	pid_t pid;     /* 0: not started yet */
	bool inherits; /* it gets the locks' descriptors */
	/* the process that semlock's caller knows: this one, or the subreaper above it */
	pid_t semlock;
};

struct file_lock;
struct locksmith;

/* What was asked for, constant.  A caller that needs a variant makes another, which must last as
 * long as its lock. */
struct lock_spec {
	const char *name; /* a path or URL; NULL: the caller's open descriptor FD */
	int fd;
	enum lock_mode mode;
	const struct method *method;
	unsigned slots; /* the most holders at once; 0: a plain lock */
	unsigned take;  /* so many slots for one holder; 0: one */
	struct range range;
	mode_t create_mode;  /* permissions of a file that we create ... */
	bool exact_mode;     /* ... whatever the umask is */
	bool to_be_removed;  /* the file, at the end */
	bool init;           /* make the token, if there is none */
	bool may_be_deleted; /* take a caller's descriptor even if its file has no name any more */
	/* by --name: no other user may take it, and its directory is created with the first lock in
	 * it */
	bool of_user;
	int64_t stale;    /* ns without a sign of life; 0: no limit */
	int64_t ttl;      /* ns of lease; 0: the server's default */
	char **command;   /* what runs under it, for --who; NULL: nothing does */
	const char *note; /* why, for people, as it was typed; NULL: not said */
};

/* What an open lock is: two of one device, inode and entry exclude each other, and share a
 * queue. */
struct lock_id {
	dev_t device;
	ino_t inode;
	/* a lock that is a name: the name in that directory; NULL: the file itself */
	const char *entry;
	uid_t owner; /* who may take it, as far as a file's permissions say so ... */
	gid_t group;
	mode_t permissions; /* ... with the file type */
};

/* Its place among the locks of its set, and in the queue. */
struct lock_place {
	bool covered;   /* by an earlier lock of its set (-f), which is of the same file */
	bool admitted;  /* we have had a place in the queue (wait_options.places) */
	bool queued;    /* at the last try there was a queue */
	bool unordered; /* its queue cannot be used: the wait is in the kernel's order */
};

/* Why a lock is BUSY: why we do not wait for it, or no longer. */
enum busy_reason {
	BUSY_NOW,     /* wait_options.try_once */
	BUSY_TIMEOUT, /* the deadline has passed */
	BUSY_CROWDED, /* all places of its queue are taken */
	/* it is held by what this process has inherited: the wait would never end */
	BUSY_INHERITED,
	BUSY_TOGGLED /* --toggle has ended the holder, and takes nothing */
};

/* How it came to its end. */
struct lock_end {
	bool lost;      /* taken away from us ... */
	bool lost_said; /* ... and the user has been told */
	/* released, but files that the command has put into it (mkdir) are left beside it */
	bool littered;
	/* errno: the release failed; EWOULDBLOCK: a stopped semlock does not let us; else 0 */
	int stuck;
};

/* A set of slots. */
struct slots {
	unsigned count;
	unsigned char *bits; /* one bit for each slot that there is; NULL: none has been tried */
};

/* What has come of it. */
struct lock {
	const struct lock_spec *spec;
	struct child *child; /* for methods that leave a record */
	int fd;              /* the open description that carries the lock, or -1 */
	int slot;            /* the slot held, from 0, or the first of them; -1: none */
	struct lock_id id;
	struct lock_place place;
	enum busy_reason busy; /* of the last attempt, if that was BUSY */
	struct lock_end end;

	/* One of these, by its method's family; the others stay empty. */
	struct {
		int access;         /* how FD is open: O_RDONLY or O_RDWR */
		bool made;          /* the file: it was not there */
		struct slots slots; /* the slots that we hold */
	} kernel;
	struct {
		int directory;           /* O_PATH, with ID.entry in it */
		struct file_lock *state; /* how far it has come (methods/file/filemethods.h) */
	} files;
	struct {
		struct locksmith *helper; /* the helper that holds the lock */
		long long token;          /* the fencing token; -1: none */
		char *text;               /* the helper's last line about the holder; NULL: none */
	} server;
};

/* A lock that is not open yet. */
#define LOCK_OF(asked_for) ((struct lock){.spec = (asked_for), .fd = (asked_for)->fd, .slot = -1})

/* The value of --on-lost: a signal's number, this, or 0 without the option. */
enum { LOST_WARN = -1 };

struct bytes {
	long long first, last; /* LLONG_MAX: to the end of the file */
};

/* The bytes of a lock with a range that LOCK asks for; of slots, one each. */
static inline struct bytes bytes_of(const struct lock *lock)
{
	const struct lock_spec *spec = lock->spec;
	const long long length =
	    spec->slots > 0 ? (long long)spec->slots : (long long)spec->range.length;

	return (struct bytes){spec->range.start,
	    length == 0 ? LLONG_MAX : spec->range.start + length - 1};
}

/* Does LOCK ask for any of the bytes from FIRST to LAST?  (A lock without ranges is all bytes.) */
static inline bool lock_overlaps(const struct lock *lock, long long first, long long last)
{
	const struct bytes bytes = bytes_of(lock);

	return (lock->spec->method->can & CAN_RANGE) == 0 ||
	       (first <= bytes.last && last >= bytes.first);
}

/* The command, while it runs under COUNT locks. */
struct guard {
	struct lock *locks;
	unsigned count;
	const char *label; /* the user's name for the first */
	pid_t command;
	int on_lost; /* LOST_WARN, or a signal's number; 0: neither */
	/* tell the user, from a thread, that LOCK is lost */
	void (*report)(const struct lock *lock);
};

/* What to do about a busy lock. */
enum when_busy {
	WAIT,
	WAIT_PAST_QUEUE, /* as with wait_options.past_queue */
	GIVE_UP          /* BUSY_INHERITED */
};

/* Whether the holder of a busy lock is stopped, which the caller does (taking.h, STEP_HELD). */
enum preempt {
	PREEMPT_NOT,
	PREEMPT_REPLACE, /* our ticket lies before all that do not replace */
	PREEMPT_TOGGLE   /* after that the lock is for those that wait: we draw no ticket */
};

/* How long to wait, and whether behind the others. */
struct wait_options {
	struct deadline deadline; /* if it has passed already: do not wait */
	bool try_once;
	unsigned places; /* wait only if fewer waiters are in the queue; 0: no limit */
	bool past_queue; /* wait for no earlier waiter, but have a place in the queue */
	bool first;      /* a place before all waiters that did not ask for this */
	enum preempt preempt;
};

/* Why a lock that is not taken within WAIT is busy: it was not waited for, or for too short a time.
 */
static inline enum busy_reason busy_within(const struct wait_options *wait)
{
	return wait->try_once ? BUSY_NOW : BUSY_TIMEOUT;
}

#endif
