/* lock/lock.h - taking a lock and giving it back: the policy over any method.
 *
 *              BUSY, time left: queue, sleep
 *               .--------------.
 *               v              |
 *   FREE --> open --> take ----+--> TAKEN --> still what the name means? --> held
 *              ^        |                                |
 *              |        '--> BUSY (-n, time out), FAILED | no: somebody removed or
 *              |                                         | replaced the file
 *              '-----------------------------------------'
 */
#ifndef SEMLOCK_LOCK_LOCK_H
#define SEMLOCK_LOCK_LOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "sys/deadline.h"
#include "lock/method.h"
#include "report/error.h"

enum mode { EXCLUSIVE, SHARED };

/* Slot N of a flock is a record lock on byte FLOCK_FIRST_SLOT + N. */
#define FLOCK_FIRST_SLOT ((off_t)1 << 62)

struct range {
	off_t start;
	off_t length; /* 0: to the end of the file, however far it grows */
};

/* The command, as far as a lock needs to know it: a record has to name it before it may
 * run.  One for all the locks it will hold. */
struct child {
	pid_t pid; /* 0: not started yet */
	bool inherits; /* it gets the locks' descriptors */
	/* Start it, up to its gate.  Returns its PID, or -1 with ERROR filled. */
	pid_t (*start)(struct child *child, struct error *error);
	void *context;
};

struct file_lock;
struct locksmith;

/* What a server tells of a holder, in one line. */
enum { SERVER_TEXT_SIZE = 256 };

/* A lock: what was asked for, and what has come of it. */
struct lock {
	const struct method *method;
	const char *name; /* a path; NULL: the caller's open descriptor FD */
	enum mode mode;
	unsigned slots; /* at most so many holders at once; 0: a plain lock */
	struct range range;
	mode_t create_mode; /* permissions of a file that we create ... */
	bool exact_mode;    /* ... whatever the umask is */
	bool to_be_removed; /* the file, at the end */
	int64_t stale;       /* ns without a sign of life; 0: never too long */
	int64_t ttl;         /* ns of lease; 0: as the method has it */
	const char *note;    /* what others may be told about the command */
	bool init;           /* make the token, if there is none */
	struct child *child; /* for methods that leave a record */
	bool may_be_deleted; /* take a caller's descriptor even if its file has no name any more */

	int fd;        /* the open description that carries the lock, or -1 */
	int access;    /* O_RDONLY or O_RDWR: how it is open */
	int slot;      /* which slot we have, from 0; -1: none */
	dev_t device;  /* what FD is: the lock's identity */
	ino_t inode;
	uid_t owner;
	mode_t permissions; /* with the file type */
	gid_t group;
	const char *entry;     /* the lock's name in DIRECTORY; NULL: not a lock made of files */
	int directory;         /* an open directory, with ENTRY */
	struct file_lock *file; /* methods that leave a record keep here what is theirs alone */
	struct locksmith *smith; /* methods on a server: the helper that holds it */
	long long token;         /* the fencing token; -1: none */
	char server_text[SERVER_TEXT_SIZE];    /* who holds it, by the helper's last word; "" */
	bool lost;               /* found out: somebody has taken it away from us ... */
	bool lost_said;          /* ... and the user has been told */
	bool stuck;              /* could not be let go: the server could not be told, say */
};

/* How long to wait, and whether behind the others. */
struct wait_options {
	struct deadline deadline; /* one that has passed already: do not wait at all */
	bool try_once;
	bool passes;              /* wait for nobody who came earlier, but have a place in the queue */

	/* Unless NULL: called with CONTEXT when LOCK is busy and the wait for it begins. */
	void (*waits)(const struct lock *lock, void *context);
	void *context;

	/* Unless NULL: our ticket lies before those of all who do not preempt, and instead of
	 * sleeping until the lock is free, this is called with PREEMPTION while it is busy, to have
	 * the holder stopped.  AGAIN: the lock may be free now; BUSY: not in time; FAILED. */
	enum outcome (*preempt)(void *preemption);
	void *preemption;
};

/* Open what LOCK names, or look at the descriptor it came with, and note its
 * identity.  Nothing is taken.  Returns 0, or -1 with ERROR filled. */
int lock_open(struct lock *lock, struct error *error);

/* Take LOCK, opening it first and opening it again whenever its name has moved on
 * to another file.  BUSY: not within WAIT_OPTIONS.  Unless TAKEN, nothing is held and
 * nothing of ours is open. */
enum outcome lock_take(struct lock *lock, const struct wait_options *wait_options, struct error *error);

/* Take the open LOCK.  AGAIN: taken or not, it has to be closed and opened anew. */
enum outcome lock_take_open(struct lock *lock, const struct wait_options *wait_options, struct error *error);

/* Does the name of LOCK, or that of its directory, still mean what was opened? */
bool lock_current(const struct lock *lock);

/* Let go: by closing our descriptor, so that whoever inherited it keeps the lock
 * (flock(1)'s rule).  A caller's own descriptor is left as it is.  Copes with any
 * half-filled state. */
void lock_forget(struct lock *lock);

/* Unlock the caller's descriptor (the fd form's -u).  Returns 0, or -1 with ERROR filled. */
int lock_undo(struct lock *lock, struct error *error);

#endif
