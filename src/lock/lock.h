/* lock/lock.h - a lock: what was asked for, and what has come of it. */
#ifndef SEMLOCK_LOCK_LOCK_H
#define SEMLOCK_LOCK_LOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "sys/deadline.h"
#include "lock/method.h"
#include "report/error.h"

enum lock_mode { EXCLUSIVE, SHARED };

/* The most slots of one lock (-j). */
enum { SLOTS_MOST = 4096 };

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
	/* Start it, up to its start barrier.  Returns its PID, or -1 with ERROR filled. */
	pid_t (*start)(struct child *child, struct error *error);
	void *context;
};

struct file_lock;
struct locksmith;

/* The size of a server's line about the holder. */
enum { SERVER_TEXT_SIZE = 256 };

struct lock {
	/* What was asked for. */
	const struct method *method;
	const char *name; /* a path or URL; NULL: the caller's open descriptor FD */
	enum lock_mode mode;
	unsigned slots; /* the most holders at once; 0: a plain lock */
	struct range range;
	mode_t create_mode;  /* permissions of a file that we create ... */
	bool exact_mode;     /* ... whatever the umask is */
	bool to_be_removed;  /* the file, at the end */
	int64_t stale;       /* ns without a sign of life; 0: no limit */
	int64_t ttl;         /* ns of lease; 0: the server's default */
	const char *note;    /* about the command, for --who */
	bool init;           /* make the token, if there is none */
	struct child *child; /* for methods that leave a record */
	bool may_be_deleted; /* take a caller's descriptor even if its file has no name any more */

	/* What has come of it. */
	int fd;        /* the open description that carries the lock, or -1 */
	int access;    /* how FD is open: O_RDONLY or O_RDWR */
	int slot;      /* the slot held, from 0; -1: none */
	dev_t device;  /* of FD: the lock's identity, with INODE */
	ino_t inode;
	uid_t owner;
	mode_t permissions; /* with the file type */
	gid_t group;
	const char *entry;     /* the lock's name in DIRECTORY; NULL: not a lock made of files */
	int directory;         /* O_PATH, with ENTRY */
	struct file_lock *file; /* the state of methods that leave a record */
	struct locksmith *smith; /* the helper that holds a lock on a server */
	long long token;         /* the fencing token; -1: none */
	char server_text[SERVER_TEXT_SIZE]; /* the helper's last line about the holder; "": none */
	bool covered;   /* by an earlier lock of its set (-f), which is of the same file */
	bool admitted;  /* we have had a place in the queue (wait_options.places) */
	bool crowded;   /* all places are taken */
	bool lost;      /* taken away from us ... */
	bool lost_said; /* ... and the user has been told */
	int stuck;      /* errno: the release failed; EWOULDBLOCK: a stopped semlock does not let us; else 0 */
};

/* How long to wait, and whether behind the others. */
struct wait_options {
	struct deadline deadline; /* if it has passed already: do not wait */
	bool try_once;
	unsigned places; /* wait only if fewer waiters are in the queue; 0: no limit */
	bool passes; /* wait for no earlier waiter, but have a place in the queue */

	/* Unless NULL: called with CONTEXT when LOCK is busy and the wait for it begins. */
	void (*waits)(const struct lock *lock, void *context);
	void *context;

	/* Unless NULL: our ticket lies before all that do not preempt.  While the lock is busy, this is
	 * called with PREEMPTION instead of a sleep, and stops the holder.  AGAIN: the lock may be free
	 * now; BUSY: not in time; FAILED. */
	enum outcome (*preempt)(void *preemption);
	void *preemption;
};

#endif
