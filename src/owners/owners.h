/* SPDX-License-Identifier: MIT */
/* owners/owners.h - the holders of a lock, and its waiters.
 *
 * The search takes no lock and disturbs no process.  A kernel lock has no record: all that is known
 * of it comes from /proc, and what /proc does not show is said to be unseen, never guessed. */
#ifndef SEMLOCK_OWNERS_OWNERS_H
#define SEMLOCK_OWNERS_OWNERS_H

#include "lock/lock.h"
#include "methods/file/owner_record.h"
#include "report/text.h"
#include "sys/open_fds.h"
#include "sys/process.h"

/* The name of a process that shows a wait, and is a child of the semlock that waits. */
#define OBSERVER_NAME "semlock-shows"

/* The name of the process that holds a lock for another (--hold), with that one's PID behind it. */
#define PLACEHOLDER_NAME "semlock>"

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
	int slot, last_slot;   /* with MODE_SLOT: --take may have several in a row; -1: not known */
	long long first, last; /* the bytes of an fcntl lock; LLONG_MAX: to the end */

	/* If the holder is semlock or flock(1): the command that it runs.  pid 0: the process
	 * cannot be seen; then TAKER, if not 0, is the process that once took the lock. */
	struct process process;
	pid_t supervisor; /* semlock or flock(1), waiting for the command to end; 0: none */
	pid_t taker;
	char host[65]; /* "": this one */

	/* why, for people, safe for a terminal; "": not said.  Of a lock on this machine it is for
	 * the caller to fill in: semlock's command line has it */
	char note[NOTE_SIZE];

	int64_t since;   /* nanoseconds after 1970; 0: not known */
	int64_t touched; /* the last sign of life in a lock made of files; 0: none */
	/* SINCE is when the lock, or the wait, began; else when the process did */
	bool since_exact;

	struct member *members;
	size_t nmembers;
};

struct owners {
	struct owner *list; /* the holders, then the waiters in the order of their turns */
	size_t count;
	size_t holders; /* the dead included: see owners_held() */
	pid_t asker;    /* the process for which they were looked for: "this process" in a text */
	/* SEEN_NOT_ALL: there are owners whose process cannot be seen */
	enum seen seen;
};

/* ---- owners_list.c: questions about the list ---- */

/* Does a process hold the lock, as far as is known?  The dead hold nothing. */
bool owners_held(const struct owners *found);

/* Is OWNER's lock held through process PID? */
bool owner_has(const struct owner *owner, pid_t pid);

/* Does OWNER's lock keep LOCK from being taken? */
bool owner_conflicts(const struct owner *owner, const struct lock *lock);

/* The kinds of kernel lock that keep LOCK's method from its lock. */
unsigned owners_kinds(const struct lock *lock);

void owners_forget(struct owners *found);

/* ---- owners_look.c, snapshot.c: the search ---- */

/* Is /proc/locks read?  Each read of it stops all locking of files on this machine for a moment,
 * and it tells less than the descriptors of the processes do: who has taken a lock that no process
 * which may be looked into has open, and who waits in the kernel without a ticket of the queue. */
enum list_use {
	LIST_NEVER,
	LIST_FOR_HOLDER, /* only if no holder is seen without it */
	LIST_FOR_ALL     /* also if there may be further holders, or waiters, that are not seen */
};

struct lock_list;

/* The processes through which an earlier look has seen a lock held. */
enum { KNOWN_MOST = 64 };
struct known_members {
	size_t count; /* 0: there was no holder, or more than one, or it had too many processes */
	pid_t pids[KNOWN_MOST];
};

/* How far a look has come. */
struct look_progress {
	int tries;     /* that have missed an owner, or may have */
	int64_t began; /* the first of them, on clock_now()'s clock */
	bool paused;   /* a piece ended where /proc/locks is read next */
};

/* What a look may cost, and what has been read for it.  A caller that looks more than once keeps
 * it; search_terms_forget() at the end. */
struct search_terms {
	unsigned kinds; /* the kernel locks that count; 0: those of the lock's method */
	enum list_use list_use;
	int64_t list_pause; /* ns between two reads of /proc/locks; INT64_MAX: one for all looks */
	int64_t budget;     /* ns of processor time for each look; 0: any */
	struct deadline deadline; /* no look goes on after it */
	pid_t asker;            /* the process that waits, for which this one looks; 0: this one */
	struct lock_list *list; /* as it was read last; NULL: not yet */
	struct fd_walk *walk;   /* over all processes; NULL: one of its own for each look */
	/* look into these first: see owners_look(); NULL: none is known */
	const struct known_members *known;
	struct look_progress progress;
};

/* For a person who asked for nothing else. */
#define SEARCH_THOROUGHLY \
	((struct search_terms){.list_use = LIST_FOR_ALL, \
	    .list_pause = INT64_MAX, \
	    .deadline = {.never = true}})

/* For a message beside something else. */
#define SEARCH_BRIEFLY \
	((struct search_terms){.list_use = LIST_FOR_HOLDER, \
	    .list_pause = INT64_MAX, \
	    .budget = 50 * MILLISECOND, \
	    .deadline = {.never = true}})

/* For the line of a wait, time and again. */
#define SEARCH_TO_OBSERVE \
	((struct search_terms){.list_use = LIST_FOR_HOLDER, \
	    .list_pause = 60 * SECOND, \
	    .budget = 250 * MILLISECOND, \
	    .deadline = {.never = true}})

/* For --replace and --toggle: all of a search, however long it takes. */
#define SEARCH_FOR_PROOF \
	((struct search_terms){.list_use = LIST_FOR_HOLDER, \
	    .list_pause = SECOND / 2, \
	    .deadline = {.never = true}})

void search_terms_forget(struct search_terms *terms);

/* Fill FOUND with LOCK's owners; LOCK is open, or its name is set.  A file that does not exist has
 * no owners.  A server is not asked: its last answer is read.  When the limits of TERMS are
 * reached, FOUND has what was found until then, and is SEEN_CUT.  Returns 0; or -1 with ERROR
 * filled: the file cannot be reached, or /proc does not tell.
 *
 * With TERMS->known: if one of these processes still has the lock, so that there can be no holder
 * beside it, FOUND is that holder, without waiters, and no other process has been looked into.
 *
 * With TERMS->walk in pieces, 1: a piece of the look has been made, and the next call goes on.
 * FOUND is empty. */
int owners_look(struct owners *found, const struct lock *lock, struct search_terms *terms,
    struct error *error);

/* The same for a lock of SPEC's name and method, which is not open; a server is asked.  Without
 * THIS_METHOD, a lock of any method counts, and SPEC gets the one that its record names. */
int owners_look_by_name(struct owners *found, struct lock_spec *spec, bool this_method,
    struct search_terms *terms, struct error *error);

/* Does process PID, at this moment, keep LOCK, which is on no server, from being taken: by a kernel
 * lock in one of its descriptors, or as the one holder of a lock made of files?  To be asked after
 * PID's pidfd was opened: if that process has ended since, a signal reaches no process, whatever
 * PID is by then.  WALK: as in search_terms. */
bool owners_verify(const struct lock *lock, pid_t pid, struct fd_walk *walk);

/* ---- record_owners.c ---- */

/* Is LOCK, made of files, one that names no process, and has it been so for AGE ns?  Nothing but
 * the lock is read: a process that has it under flock(2) is not looked for. */
bool record_names_nobody(const struct lock *lock, int64_t age);

/* ---- owner_text.c: a holder in words ---- */

enum { OWNER_COMMAND_COLUMNS = 60 }; /* of a command in a message */

/* MOMENT, nanoseconds after 1970, in local time, at most 11 characters: "12:01:07" today, "11-20
 * 12:01" this year, else "2025-11-20". */
void moment_text(int64_t moment, char *text, size_t size);

/* LOCK's name, or "descriptor 8 (/run/x.lock)". */
void lock_text(const struct lock *lock, char *text, size_t size);

/* What stands in the place of HOLDER's command, if its record does not prove it alive: at most 31
 * characters,
 * "(has ended; free to take)".  Else "". */
void verdict_text(const struct owner *holder, char *text, size_t size);

/* Why HOLDER cannot be signalled, as half a sentence; "" if it can. */
void doubt_text(const struct owner *holder, char *text, size_t size);

enum { OWNER_TEXT = 400 + NOTE_SIZE }; /* room for owner_text() */

/* "held by 4242 (rsync -a /srv) since 12:01:07: NOTE", without a full stop; at most COLUMNS
 * characters of the command, and NOTE_COLUMNS of the note. Returns false when there is no holder.
 */
bool owner_text(const struct owners *found, size_t columns, size_t note_columns, char *text,
    size_t size);

/* The process for which HOLDER, a placeholder of semlock --hold, holds the lock; 1: one that is not
 * known; 0: HOLDER is none. */
pid_t owner_caller_of_hold(const struct owner *holder);

/* Where a holder is a semlock --hold, name the process that it holds the lock for; where it is
 * ASKER, which is the holder's command, the process that supervises it.  For display alone. */
void owners_name_callers(struct owners *found, pid_t asker);

/* Fill FOUND with the owners of LOCK that owner_text() is to name: of the holders, those that it
 * may have to wait for. Returns false when they cannot be found; else owners_forget() has to
 * follow. */
bool owners_for_text(struct owners *found, const struct lock *lock, struct search_terms *terms);

/* ---- owners_look.c: nested locks ---- */

enum nesting {
	NESTING_NONE,   /* nothing of LOCK's file is locked by what this process has inherited */
	NESTING_BESIDE, /* the inherited lock and the requested one do not conflict: other bytes of
	                 * the file, some of them shared by both, or another kind of lock */
	NESTING_SHARED, /* the inherited lock and the requested one are shared, on the same bytes */
	NESTING_AGAIN, /* the inherited lock would do, and another like it may be had: a slot beside
	                * a slot; on a server, a shared lock, but a waiter may be queued between the
	                * two */
	NESTING_COVERS, /* the inherited lock is held in a mode that covers the requested one */
	NESTING_LESS    /* the inherited lock is less than is requested: shared or a slot, not
	                   exclusive; or some bytes */
};

/* Does this process, which may run under a lock, ask for the same lock again?  What it has
 * inherited is the only proof: the descriptor that carries the lock of a file, or the pipe to the
 * helper that holds a lock on a server.  LOCK need not be open.  Unless NESTING_NONE, *FD is that
 * descriptor. */
enum nesting nesting_inherited(const struct lock *lock, int *fd);

/* ---- open_locks.c: the locks that processes of this machine have open ---- */

struct open_lock {
	/* with its directory, or a URL; a file that has no such name here: by /proc/PID/root */
	char *name;
	struct identity file; /* zero: on a server */
	pid_t semlock;        /* of a lock on a server: the semlock that has the helper */
};

struct open_locks {
	struct open_lock *list; /* a file is there once, a URL for each helper */
	size_t count;
	bool unseen; /* some processes may not be looked into */
	bool failed; /* no memory: some are missing */
};

/* Search all processes for descriptors with a lock on them, whatever program took it, for all that
 * a semlock has open, and for the helpers of locks on servers.  What a semlock has open may be no
 * lock: that has no owners. */
void open_locks_find(struct open_locks *all);

/* Fill FOUND with the owners of lock I of ALL, which is looked for with METHOD unless its record
 * names another; of a lock on a server those that this machine knows of, without asking the server.
 * Returns false, with FOUND empty, if it cannot be looked at, or lock I is an earlier one's. */
bool open_locks_owners(struct owners *found, const struct open_locks *all, size_t i,
    const struct method *method, struct search_terms *terms);

#endif
