/* SPDX-License-Identifier: MIT */
/* methods/file/filemethods.h - locks made of files: what differs between the methods, and what they
 * share.
 *
 * Beside the methods (plainfile.c: excl and link, mkdir.c, symlink.c, rename.c) there are
 * lockdir.c, takeover.c, publish.c and heartbeat.c.  All calls are relative to one descriptor of
 * the directory that the lock is in: neither chdir(2) nor renaming the directory changes what they
 * refer to. */
#ifndef SEMLOCK_METHODS_FILE_FILEMETHODS_H
#define SEMLOCK_METHODS_FILE_FILEMETHODS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "lock/lock.h"
#include "methods/file/owner_record.h"

enum { NAME_SIZE = 256 };

/* The state of our own object. */
enum object_life {
	OBJECT_NONE,  /* not made yet, or closed again */
	OBJECT_READY, /* flocked, with a record that names the command */
	OBJECT_HELD   /* it has the lock's name */
};

/* A lock made of files, LOCK->files.state. */
struct file_lock {
	const struct object *object; /* how this method's lock is made */
	/* no other kernel uses the file system, so that locks and PIDs prove something */
	bool local;
	bool by_age; /* NFS 3 with --stale, where a dead machine's flock stays: the object is under
	              * flock(2) only while a process removes it, and signs of life alone prove
	              * life */
	enum object_life life;
	bool inherited;            /* the command inherits its descriptor */
	bool named;                /* O_TMPFILE and linkat(2) do not work here */
	char temporary[NAME_SIZE]; /* the name of our object until it gets the lock's; "": none */
	char away[NAME_SIZE];      /* with rename: the file's name while the lock is held */
	struct record record;      /* what our object says */
	int second;    /* where flock(2) depends on the name: the lock, opened by its name; -1 */
	int notify;    /* inotify on the directory, while a foreign holder has the lock; -1 */
	int64_t pause; /* ns of the last sleep for a foreign holder; 0: none yet */
	/* the last sign of life, if it is dated in the future, and when this waiter first saw it,
	 * in ns on clock_now()'s clock; 0: none */
	int64_t future, future_since;
};

/* What distinguishes one kind of lock object from another.  A symbolic link has no make, write,
 * make_empty or read.  The file of rename, whose method has a take of its own, has no make, write,
 * publish, make_empty or attempt. */
struct object {
	const char *what; /* "a regular file", for messages */
	mode_t type;      /* S_IFREG, S_IFDIR or S_IFLNK */
	bool pid_only;    /* the PID is all that is written into it */

	/* Make our object, not published yet, and set LOCK->fd.  Returns 0, or -1 with ERROR
	 * filled. */
	int (*make)(struct lock *lock, struct error *error);
	/* Write LOCK->files.state->record into our object, which is open as FD.  Returns 0, or -1
	 * with ERROR filled. */
	int (*write)(const struct lock *lock, int fd, struct error *error);
	/* Give our object the lock's name.  Returns TAKEN; AGAIN if the name exists; or FAILED. */
	enum outcome (*publish)(struct lock *lock, struct error *error);
	/* The same, where publish_renamed() cannot rename: make another object under the lock's
	 * name, which is empty until publish_empty() fills it. */
	enum outcome (*make_empty)(struct lock *lock, struct error *error);
	/* When the name is taken: takeover_attempt(), or its like. */
	enum outcome (*attempt)(struct lock *lock, enum wait wait, struct error *error);
	/* Read the record of the object that is open as FD. */
	void (*read)(int fd, struct record *record);
	/* Does the name mean our object?  If not, errno is set: ENOENT if it means something
	 * else. */
	bool (*is_ours)(const struct lock *lock);
	/* Remove the lock's name, which means the object open as FD.  Returns 0, or -1 with errno
	 * set. */
	int (*remove)(struct lock *lock, int fd);
	/* Give a sign of life: never to another holder's lock. */
	void (*beat)(struct lock *lock);
};

/* What a lock says of its holder. */
struct lock_info {
	bool there;   /* the lock is held or was left behind; if not, all other members are empty */
	bool legible; /* RECORD could be read */
	struct record record;
	struct stat status; /* of the file, the directory or the link */
	/* an O_PATH descriptor of what the holder has under flock(2); -1: none */
	int object;
};

/* ---- lockdir.c: the directory, and the names in it ---- */

/* The functions open, current and stuck_reason of a method.  The first splits LOCK's name, opens
 * its directory, and makes LOCK->files.state.  The second returns whether LOCK's name still leads
 * into that directory. */
int lockdir_open(struct lock *lock, struct error *error);
bool lockdir_current(const struct lock *lock);
const char *lockdir_stuck_reason(const struct lock *lock);

/* Get the status of NAME in DIRECTORY, or of DIRECTORY if NAME is empty: LOCK's object, whose age
 * may count.  With --stale, on a file system that is not local, this asks the server and not a
 * cache.  Returns 0, or -1 with errno set. */
int lockdir_status(const struct lock *lock, int directory, const char *name, struct stat *status);

/* Does NAME in the directory mean what is open as FD?  If not, errno is set: ENOENT if it means
 * something else.  The second function does this for the lock's name and LOCK->fd. */
bool lockdir_same(const struct lock *lock, const char *name, int fd);
bool lockdir_is_ours(const struct lock *lock);

/* Open the directory FD once more, to list it.  Returns NULL with errno set if that fails. */
DIR *lockdir_list(int fd);

/* Fill ERROR with WHAT and errno's text; its kind is ERROR_SYSTEM if errno means that a resource
 * has run out, else KIND.  Returns -1. */
int lockdir_failed(struct error *error, enum kind kind, const char *what);

/* The lock's name could not be created; errno says why.  Returns AGAIN if the name exists, else
 * FAILED with ERROR filled. */
enum outcome lockdir_not_named(struct error *error);

/* Fill ERROR: what has the lock's name is no lock of LOCK's method.  Returns -1. */
int lockdir_not_a_lock(const struct lock *lock, struct error *error);

/* Put into NAME a name for our object while it does not have the lock's name.  KIND, "" or "gone.",
 * is a part of it. */
void lockdir_temporary_name(const struct lock *lock, const char *kind, char name[NAME_SIZE]);

/* Create a file of our own in the directory.  NAME becomes its temporary name; "": the file has no
 * name.  Returns its descriptor, or -1 with errno set. */
int lockdir_create_file(const struct lock *lock, char name[NAME_SIZE], mode_t mode);

/* Remove objects that killed semlocks left behind under temporary names. */
void lockdir_sweep(const struct lock *lock);

/* The time in ns since 1970 by the clock of the directory's file system: a lock's age must not
 * depend on whose clock is right.  -1: unknown. */
int64_t lockdir_now(const struct lock *lock);
int64_t lockdir_mtime(const struct stat *status);

/* Read the record that is the contents of FD. */
void lockdir_read_record(int fd, struct record *record);

/* Sleep for DURATION ns, less than a second.  Returns 0, or -1 when a signal came. */
int lockdir_nap(int64_t duration);

/* ---- takeover.c: a lock that has the name that we want: is its holder alive? ---- */

/* Take over the lock under the name of LOCK; with SLEEP, wait for its holder.  AGAIN: it is gone or
 * has changed: try to publish now.  BUSY: it is held, or with SLEEP, a signal interrupted the
 * sleep.  FAILED, with ERROR filled: it is not a lock of this method. */
enum outcome takeover_attempt(struct lock *lock, enum wait wait, struct error *error);

/* A method's idle: is the lock free, or its holder dead? */
enum outcome takeover_idle(struct lock *lock, struct error *error);

/* The verdict on RECORD, of an object with STATUS that no process has under flock(2).  NOW: the
 * time in ns since 1970, for a caller that must change nothing; 0: ask the file system for it, by
 * making a file. */
enum verdict takeover_judge(const struct lock *lock, const struct record *record,
    const struct stat *status, int64_t now);

/* May the lock be taken over?  Its holder is dead, or UNKNOWN and without a sign of life for
 * LOCK->stale ns. */
bool takeover_allowed(struct lock *lock, enum verdict verdict, const struct stat *status);

/* The lock cannot be taken over: unflock FD, which has its name (-1: not open), and with SLEEP wait
 * for its release.  PID: its living holder; 0: none is known.  Returns BUSY, or what
 * foreign_holder_await() returns. */
enum outcome takeover_wait(struct lock *lock, int fd, enum wait wait, pid_t pid);

/* For a file that got the lock's name by rename(2) or link(2) and may be older than the lock: set
 * the mtime in STATUS to the time of that call, which is the ctime if the file system records
 * it. */
void takeover_note_naming(struct stat *status);

/* For a holder that does not use flock(2): sleep until something happens to the lock's name,
 * process PID (0: none is known) ends, or it is time to examine the lock again.  DIES_WITH_IT: the
 * lock is not released before that process ends.  Returns AGAIN: examine the lock; BUSY: a signal
 * came.  Unless DIES_WITH_IT, the first of several calls only begins to listen, and returns AGAIN
 * at once, because the lock may have changed before. */
enum outcome foreign_holder_await(struct lock *lock, pid_t pid, bool dies_with_it);

/* The first returns a descriptor that becomes readable when the directory changes, or -1; the
 * second stops listening. */
int foreign_holder_listen(struct lock *lock);
void foreign_holder_forget(struct file_lock *file);

/* A method's inspect: fill INFO, which is empty (OBJECT -1), for the open LOCK, and change nothing.
 * Returns 0, or -1 with ERROR filled if the lock cannot be examined, or is not a lock of that
 * method.  Call lock_info_forget() in either case.  The second function does this for the object
 * NAME. */
int inspect_object(const struct lock *lock, struct lock_info *info, struct error *error);
int inspect_name(const struct lock *lock, const char *name, struct lock_info *info,
    struct error *error);
void lock_info_forget(struct lock_info *info);

/* ---- publish.c: our own object: made, filled, flocked, published under the lock's name, and
 * removed ---- */

/* A method's take, prepare, owned, drop and release, and an object's beat: see lock/method.h and
 * above. */
enum outcome publish_take(struct lock *lock, enum wait wait, struct error *error);
int publish_prepare(struct lock *lock, struct error *error);
bool object_owned(struct lock *lock);
int object_drop(struct lock *lock, struct error *error);
void object_release(struct lock *lock);
void object_beat(struct lock *lock);

/* Move FD, our new object, above the standard descriptors, and give it MODE if the user asked for
 * one.  Returns the new number; or -1 with errno set, and FD, which may be -1, is closed. */
int publish_set_up(const struct lock *lock, int fd, mode_t mode);

/* Link FD, a file made by lockdir_create_file(), under the lock's name.  Returns 0, or -1 with
 * errno set. */
int publish_link(const struct lock *lock, int fd);

/* Flock FD, signals notwithstanding.  Returns 0, or -1 with errno set: EWOULDBLOCK if another
 * process has kept it flocked for a second. */
int publish_flock(int fd);

/* Fill LOCK's record with the command's process.  Returns false if that process does not exist yet:
 * then the outcome is NEEDS_CHILD. */
bool publish_describe(struct lock *lock);

/* Make LOCK->files.state->record the contents of FD, which is empty.  Returns 0, or -1 with ERROR
 * filled. */
int publish_record(const struct lock *lock, int fd, struct error *error);

/* Does errno mean that the file system does not support the operation? */
bool publish_unsupported(void);

/* The publish of an object that has a temporary name: rename it, replacing nothing; where that is
 * not supported, make_empty(). */
enum outcome publish_renamed(struct lock *lock, struct error *error);

/* FD has been made under the lock's own name, and is empty; -1: open it here.  FD replaces our
 * previous object, which is closed.  Set MODE if the user gave one, flock the file and write the
 * record.  Returns TAKEN; AGAIN: the name means another object by now; or FAILED, with ERROR
 * filled. */
enum outcome publish_empty(struct lock *lock, int fd, mode_t mode, struct error *error);

/* ---- heartbeat.c ---- */

/* A method's guard and unguard: a thread, if the command's locks need it, that gives signs of life
 * for them and monitors them.  Other programs can remove such a lock, or take it for stale.  A beat
 * keeps away waiters that go by age; after a loss, the sooner the command ends, the less harm it
 * does. */
int heartbeat_guard(const struct guard *guard, struct error *error);
void heartbeat_unguard(void);

/* ---- the methods ---- */

extern const struct method method_excl;
extern const struct method method_link;
extern const struct method method_mkdir;
extern const struct method method_rename;
extern const struct method method_symlink;

/* For every method whose locks are made of files. */
#define FILE_METHOD_COMMON \
	.family = OF_FILES, .guard = heartbeat_guard, .unguard = heartbeat_unguard, \
	.stuck_reason = lockdir_stuck_reason, .current = lockdir_current, .owned = object_owned, \
	.drop = object_drop, .release = object_release

/* For a method whose struct object has all functions. */
#define FILE_METHOD_FUNCTIONS \
	FILE_METHOD_COMMON, .open = lockdir_open, .prepare = publish_prepare, \
			    .take = publish_take, .idle = takeover_idle, .inspect = inspect_object

#endif
