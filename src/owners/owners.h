/* SPDX-License-Identifier: MIT */
/* owners/owners.h - the holders of a lock, and its waiters.
 *
 * The search disturbs no process, and takes no lock, with one exception: see
 * kernel_owner_outside().  A kernel lock has no record: all that is known of it comes from /proc,
 * and what /proc does not show is reported as unseen, never guessed. */
#ifndef SEMLOCK_OWNERS_OWNERS_H
#define SEMLOCK_OWNERS_OWNERS_H

#include <string.h>

#include "lock/lock.h"
#include "methods/file/owner_record.h"
#include "owners/hold_id.h"
#include "report/text.h"
#include "sys/open_fds.h"
#include "sys/process.h"

/* The name of semlock's processes, which main.c sets: --who and --replace recognise them by it. */
#define SEMLOCK_NAME "semlock"

/* Is NAME the name of a semlock's process? */
static inline bool name_is_semlock(const char *name)
{
	return strcmp(name, SEMLOCK_NAME) == 0;
}

/* Is NAME the name of a flock(1) process? */
static inline bool name_is_flock(const char *name)
{
	return strcmp(name, "flock") == 0;
}

/* The name of the process that draws a waiting line, a child of the semlock that waits. */
#define OBSERVER_NAME "semlock-shows"

/* The beginning of the name of a process that holds a lock for another one (--hold).  That other
 * process's PID follows. */
#define PLACEHOLDER_NAME "semlock>"

/* A process through which a lock is held.  Usually a lock has two: semlock and its command, which
 * share it. */
struct member {
	pid_t pid;
	int fd; /* -1: not known */
};

/* Why it is not proven which process holds a lock. */
enum doubt {
	DOUBT_NONE,
	DOUBT_HOST,      /* the holder is on another host */
	DOUBT_MACHINE,   /* the same, but that host's name is unknown (NFS) */
	DOUBT_NAMESPACE, /* the holder is in another PID namespace, or hidden from this process */
	DOUBT_NOBODY,    /* the record names no process */
	DOUBT_EARLIER,   /* the record may be an earlier holder's */
	DOUBT_RANGE,     /* the recorded PID is higher than kernel.pid_max */
	DOUBT_ILLEGIBLE, /* this process may not read the record */
	DOUBT_FLOCK,     /* the recorded process has ended, but another one flocks the lock */
	DOUBT_OWNER,     /* another user owns the lock, or may write to it */
	DOUBT_NUMBER     /* another process may have reused the recorded PID */
};

struct owner {
	bool waits;
	enum verdict verdict; /* DEAD and UNKNOWN: only for a lock made of files, by its record */
	enum doubt doubt; /* why the verdict is UNKNOWN; with ALIVE, why it may not be signalled */
	const char *method; /* "flock", "ofd", "posix" ... */
	unsigned kind;      /* KIND_* of sys/open_fds.h; 0: no kernel lock */
	enum owner_mode mode;
	int slot, last_slot;   /* for MODE_SLOT: --take may have several in a row; -1: unknown */
	long long first, last; /* the bytes of an fcntl lock; LLONG_MAX: to the end */

	/* The owner's process; but if a holder is semlock or flock(1), the command that it runs.
	 * pid 0: the process cannot be seen; then TAKER, unless 0, is the process that once took
	 * the lock. */
	struct process process;
	pid_t supervisor; /* the semlock or flock(1) that waits for the command to end; 0: none */
	pid_t taker;
	char host[65]; /* "": this host */

	/* why the owner holds or waits, for people (--note), safe for a terminal; "": unknown.  For
	 * a lock on this machine the caller fills it in, from semlock's command line */
	char note[NOTE_SIZE];

	int64_t since;   /* nanoseconds after 1970; 0: unknown */
	int64_t touched; /* the last sign of life in a lock made of files; 0: none */
	/* true: SINCE is when the lock or the wait began; false: when the process started */
	bool since_exact;

	struct member *members;
	size_t nmembers;
};

struct owners {
	struct owner *list; /* the holders, then the waiters in the order of their turns */
	size_t count;
	size_t holders; /* how many of LIST hold, the dead included: see owners_held() */
	pid_t asker;    /* the process that asks: "this process" in a text */
	/* SEEN_NOT_ALL: some owners' processes cannot be seen */
	enum seen seen;
};

/* ---- owners_list.c: questions about the list ---- */

/* Does a process hold the lock, as far as is known?  The dead hold nothing. */
bool owners_held(const struct owners *found);

/* Does OWNER hold its lock through process PID? */
bool owner_has(const struct owner *owner, pid_t pid);

/* LOCK is busy: does OWNER's lock keep it from being taken? */
bool owner_conflicts(const struct owner *owner, const struct lock *lock);

/* The kinds of kernel lock that conflict with LOCK's method. */
unsigned owners_kinds(const struct lock *lock);

/* Free what FOUND holds: it has no owners then. */
void owners_forget(struct owners *found);

/* ---- owners_look.c, snapshot.c: the search ---- */

/* When to read /proc/locks.  Each read stops all file locking on this machine for a moment.  The
 * list shows only two things that the descriptors of the processes do not: who took a lock that is
 * open only in processes that this one may not look into, and who waits in the kernel without a
 * ticket. */
enum list_use {
	LIST_NEVER,
	LIST_FOR_HOLDER, /* only if no holder is found without it */
	LIST_FOR_ALL     /* also if holders or waiters may be missing */
};

struct lock_list;

/* The processes through which an earlier look saw a lock held. */
enum { KNOWN_MOST = 64 };
struct known_members {
	size_t count; /* 0: no holder, more than one, or one with too many processes */
	pid_t pids[KNOWN_MOST];
};

/* How far a look has come. */
struct look_progress {
	int tries;     /* looks that missed an owner, or may have */
	int64_t began; /* when the first look began, on clock_now()'s clock; 0: not yet */
	bool paused;   /* a piece ended just before a read of /proc/locks */
};

/* What a look may cost, and what it has read.  A caller that looks more than once keeps it, and
 * calls search_terms_forget() at the end. */
struct search_terms {
	unsigned kinds; /* the kernel locks that count; 0: those that conflict with the lock's
	                 * method */
	enum list_use list_use;
	int64_t list_pause; /* ns between two reads of /proc/locks; INT64_MAX: one for all looks */
	int64_t budget;     /* ns of processor time for each look; 0: no limit */
	struct deadline deadline; /* no look lasts longer */
	pid_t asker;              /* the waiting process that asks; 0: this one */
	struct lock_list *list;   /* the last one read; NULL: none */
	struct fd_walk *walk;     /* shared by all looks; NULL: each look makes its own */
	bool without_waiters;     /* skip waiters if a holder excludes them; only if WALK is NULL */
	/* look into these first: see owners_look(); NULL: none is known */
	const struct known_members *known;
	struct look_progress progress;
};

/* For a user who asked for nothing else (--who). */
#define SEARCH_THOROUGHLY \
	((struct search_terms){.list_use = LIST_FOR_ALL, \
	    .list_pause = INT64_MAX, \
	    .deadline = {.never = true}})

/* For a message about something else, which also names the holder. */
#define SEARCH_BRIEFLY \
	((struct search_terms){.list_use = LIST_FOR_HOLDER, \
	    .list_pause = INT64_MAX, \
	    .budget = 50 * MILLISECOND, \
	    .deadline = {.never = true}})

/* For the waiting line, which looks again and again. */
#define SEARCH_TO_OBSERVE \
	((struct search_terms){.list_use = LIST_FOR_HOLDER, \
	    .list_pause = 60 * SECOND, \
	    .budget = 250 * MILLISECOND, \
	    .deadline = {.never = true}})

/* For --replace and --toggle: a complete search, however long it takes. */
#define SEARCH_FOR_PROOF \
	((struct search_terms){.list_use = LIST_FOR_HOLDER, \
	    .list_pause = SECOND / 2, \
	    .deadline = {.never = true}})

/* Free what the looks with TERMS have read.  TERMS keeps its limits.  Its walk is for the caller to
 * free. */
void search_terms_forget(struct search_terms *terms);

/* Fill FOUND with LOCK's owners; LOCK is open, or its name is set.  A file that does not exist has
 * no owners.  For a lock on a server, the server is not asked: its last answer is used.  When a
 * limit of TERMS is reached, FOUND has what was found until then, and is SEEN_CUT.  Returns 0; or
 * -1 with ERROR filled: the file cannot be reached, or /proc cannot be read.
 *
 * With TERMS->known: first look only into these processes.  If one of them still holds the lock,
 * and excludes all other holders, the look is over: FOUND has that holder alone, and only those
 * waiters that have a ticket.
 *
 * If TERMS->walk is made in pieces, also returns 1 after a piece, with FOUND empty: the next call
 * continues. */
int owners_look(struct owners *found, const struct lock *lock, struct search_terms *terms,
    struct error *error);

/* The same for the lock that SPEC names, which is not open; a server is asked.  With THIS_METHOD,
 * only locks that conflict with SPEC->method's count.  Without it, a lock of any method counts, and
 * if the lock has a record, SPEC->method becomes the method that made it.  For a URL, SPEC->method
 * becomes the server's. */
int owners_look_by_name(struct owners *found, struct lock_spec *spec, bool this_method,
    struct search_terms *terms, struct error *error);

/* Does process PID keep LOCK from being taken at this moment: by a kernel lock in one of its
 * descriptors, or as the only holder of a lock made of files?  False for a lock on a server.  Open
 * PID's pidfd before this call, so that a signal cannot reach another process that reuses the PID.
 * WALK: as in search_terms. */
bool owners_verify(const struct lock *lock, pid_t pid, struct fd_walk *walk);

/* ---- record_owners.c ---- */

/* Does the record of LOCK, a lock made of files, name no process, and was it last written more than
 * AGE ns ago?  Reads only the lock, and does not look for a process that has it under flock(2). */
bool record_names_nobody(const struct lock *lock, int64_t age);

/* ---- owner_text.c: a holder in words ---- */

enum { OWNER_COMMAND_COLUMNS = 60 }; /* in a message */

/* Write MOMENT, nanoseconds after 1970, into TEXT, in local time, at most 11 characters: "12:01:07"
 * today, "11-20 12:01" this year, else "2025-11-20". */
void moment_text(int64_t moment, char *text, size_t size);

/* Write the time since MOMENT, nanoseconds after 1970, into TEXT: "63 s", "12 min", "5 h" or "3 d";
 * in a column "63s", "12m", "5h" or "3d".  "" if MOMENT is in the future: a clock was set. */
void age_text(int64_t moment, bool in_column, char *text, size_t size);

/* Write LOCK's name into TEXT, or "descriptor 8 (/run/x.lock)". */
void lock_text(const struct lock *lock, char *text, size_t size);

/* Write into TEXT what to show instead of HOLDER's command, if HOLDER is not proven alive, or its
 * command is unknown: at most 31 characters, such as "(has ended; free to take)".  Else TEXT
 * becomes "". */
void verdict_text(const struct owner *holder, char *text, size_t size);

/* Write into TEXT why HOLDER cannot be signalled, as part of a sentence; "" if it can. */
void doubt_text(const struct owner *holder, char *text, size_t size);

enum { OWNER_TEXT = 400 + NOTE_SIZE }; /* room for owner_text() */

/* How many columns each part of owner_text() may take; 0: leave it out. */
struct owner_room {
	size_t command, host, note;
	bool since, age; /* no AGE without SINCE */
};

#define OWNER_WHOLE \
	((struct owner_room){.command = OWNER_COMMAND_COLUMNS, \
	    .host = 64, \
	    .note = NOTE_SIZE, \
	    .since = true, \
	    .age = true})

/* Write into TEXT, as far as ROOM allows, and without a full stop: "held by 4242 (rsync -a /srv)
 * since 12:01:07, 63 s, "NOTE"".  Returns false when there is no holder. */
bool owner_text(const struct owners *found, const struct owner_room *room, char *text, size_t size);

enum { WAY_OUT = PATH_MAX + 128 }; /* room for way_out_text() */

/* Write into TEXT, after a semicolon, a command that helps the user with LOCK.  If a hold in the
 * background holds LOCK, and this user may end it, that is semlock --release; otherwise semlock
 * --who.  TEXT becomes "" for a caller's descriptor.  FOUND: from owners_for_text(). */
void way_out_text(const struct owners *found, const struct lock *lock, char *text, size_t size);

/* If OWNER holds a lock of this machine, or waits for it, by a hold in the background, write the ID
 * of that hold into ID, and the user of its semlock into *USER, unless USER is NULL.  Returns false
 * if OWNER holds or waits in another way, or cannot be seen. */
bool owner_find_hold(const struct owner *owner, char id[HOLD_ID_SIZE], uid_t *user);

/* If HOLDER is the placeholder of a semlock --hold, return the PID of the process that it holds the
 * lock for, according to its name.  Returns 1 if that PID is unknown, or if HOLDER runs neither as
 * root nor as that process's user.  Returns 0 if HOLDER is no placeholder. */
pid_t owner_caller_of_hold(const struct owner *holder);

/* Only for display: replace two kinds of holders.  The placeholder of a semlock --hold becomes the
 * process that it holds the lock for.  ASKER itself, or its subreaper, becomes the process that
 * supervises it. */
void owners_name_callers(struct owners *found, pid_t asker);

/* Fill FOUND with the owners of LOCK that owner_text() will name.  Of the holders, FOUND has only
 * those that hold some of LOCK's bytes.  Returns false if they cannot be found; otherwise call
 * owners_forget() afterwards. */
bool owners_for_text(struct owners *found, const struct lock *lock, struct search_terms *terms);

/* ---- owners_look.c: nested locks ---- */

enum nesting {
	NESTING_NONE,   /* this process has inherited nothing that locks LOCK's file */
	NESTING_BESIDE, /* the inherited lock and the requested one do not conflict: other bytes of
	                 * the file, some bytes if both are shared, or another kind of lock */
	NESTING_SHARED, /* both are shared, and the inherited one has all the requested bytes */
	NESTING_AGAIN,  /* the inherited lock is enough, but another like it may be taken: a slot
	                 * beside a slot; on a server, a second shared lock, although a waiter may
	                 * queue between the two */
	NESTING_COVERS, /* the inherited lock's mode covers the requested one */
	NESTING_LESS    /* the inherited lock is less than requested: shared or a slot, not
	                 * exclusive; or some of the bytes */
};

/* Does this process run under a lock, and ask for the same lock again?  The proof is what it has
 * inherited: the descriptor that carries the lock of a file, or the pipe to the helper that holds a
 * lock on a server.  LOCK need not be open.  Unless the answer is NESTING_NONE, *FD becomes that
 * descriptor. */
enum nesting nesting_inherited(const struct lock *lock, int *fd);

/* ---- open_locks.c: the locks that processes on this machine have open ---- */

struct open_lock {
	/* an absolute path, or a URL; if no path leads to the file from here, one in
	 * /proc/PID/root or /proc/PID/fd */
	char *name;
	struct identity file; /* zero: on a server */
	pid_t semlock;        /* of a lock on a server: the semlock that started the helper */
	uid_t user;           /* the user who is charged for looking at it */
	bool left_out;        /* because that user's time was used up */
};

/* The cost of looking into another user's processes. */
struct user_cost {
	uid_t user;
	int64_t cost; /* ns of processor time */
	bool cut;     /* the limit was reached: the rest is left out */
};

/* A directory that was read for the locks in it, for a process of USER. */
struct directory_read {
	struct identity directory;
	uid_t user;
};

struct open_locks {
	struct open_lock *list; /* each file once, and a URL for each helper */
	size_t count;
	bool unseen; /* some processes are hidden from this user */
	bool failed; /* no memory: some are missing */

	uid_t user; /* whose process is being looked into */
	struct directory_read *read;
	size_t nread;
	struct user_cost *costs; /* one for each user but root and this one */
	size_t ncosts;
	int64_t cost;              /* the sum of COSTS */
	struct user_cost *charged; /* NULL: nobody */
	int64_t charged_from;      /* on clock_processor()'s clock */
	struct allowance limit;    /* for CHARGED */
};

/* Search all processes for three things: descriptors of any program that carry a flock or an OFD
 * lock; all that a semlock has open; and the helpers of locks on servers.  What a semlock has open
 * need not be a lock: then it has no owners.
 *
 * The processes of each user but root and this one are looked into for a limited time only. */
void open_locks_find(struct open_locks *all);

/* Fill FOUND with the owners of lock I of ALL.  METHOD applies unless the lock's record shows
 * another.  For a lock on a server, list only the owners that this machine knows.  TERMS->walk is
 * not NULL.  Returns false, with FOUND empty, if the lock is left out (LEFT_OUT), cannot be
 * examined or is the same as an earlier one.  Whatever this returns, call open_locks_looked() when
 * FOUND has been printed: until then the time is charged to the lock's user. */
bool open_locks_owners(struct owners *found, struct open_locks *all, size_t i,
    const struct method *method, struct search_terms *terms);

/* Stop charging the lock's user. */
void open_locks_looked(struct open_locks *all);

/* How many users have locks that were left out because their time was used up?  If there are any,
 * *USER becomes one of them. */
size_t open_locks_left_out(const struct open_locks *all, uid_t *user);

#endif
