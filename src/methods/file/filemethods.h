/* SPDX-License-Identifier: MIT */
/* methods/file/filemethods.h - locks made of files: what differs between the methods, and what they
 * share.
 *
 * Beside the methods (plainfile.c: excl and link, mkdir.c, symlink.c, rename.c) there are
 * lockdir.c, takeover.c, publish.c and heartbeat.c.  They pass every file name to the kernel
 * relative to one descriptor of the lock's directory.  So the names mean the same files even after
 * chdir(2), or after the directory was renamed. */
#ifndef SEMLOCK_METHODS_FILE_FILEMETHODS_H
#define SEMLOCK_METHODS_FILE_FILEMETHODS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "lock/lock.h"
#include "methods/file/owner_record.h"

enum { NAME_SIZE = 256 };

/* The state of our object: the file, directory or symbolic link with which we take the lock. */
enum object_life {
	OBJECT_NONE,  /* not made yet, or closed again */
	OBJECT_READY, /* its record names the command; it does not have the lock's name */
	OBJECT_HELD   /* it has the lock's name: we hold the lock */
};

/* A lock made of files, LOCK->files.state. */
struct file_lock {
	const struct object *object; /* how this method's lock is made */
	/* only this kernel uses the file system, so it knows every flock, and every process that a
	 * record there can name */
	bool local;
	/* NFS 3 with --stale.  There a dead machine's flock stays, so a holder keeps no flock: its
	 * signs of life show that it lives.  The object is flocked briefly, mostly to remove it. */
	bool by_age;
	enum object_life life;
	bool inherited;            /* the command inherits the object's descriptor */
	bool named;                /* linkat(2) cannot name a nameless file: use a temporary name */
	char temporary[NAME_SIZE]; /* the name of our object until it gets the lock's; "": none */
	char away[NAME_SIZE];      /* with rename: the file's name while the lock is held */
	struct record record;      /* what our object says of its holder */
	int second;    /* our object, opened by the lock's name: see flock_by_name(); -1: none */
	int notify;    /* inotify on the directory, see foreign_holder_listen(); -1: none */
	int64_t pause; /* ns of the last short pause, see next_pause(); 0: not listening yet */
	/* the lock's last sign of life that was dated in the future: its date, in ns since 1970,
	 * and when this waiter first saw it, in ns on clock_now()'s clock; 0: none */
	int64_t future, future_since;
};

/* How one kind of object is made, named, examined and removed.  The object of symlink has no make,
 * write, make_empty or read.  That of rename, whose method has its own take, has no make, write,
 * publish, make_empty or attempt. */
struct object {
	const char *what; /* "a regular file", for messages */
	mode_t type;      /* S_IFREG, S_IFDIR or S_IFLNK */
	bool pid_only;    /* the PID is all that is written into it */

	/* Make our object, which does not get the lock's name yet, and open it as LOCK->fd.
	 * Returns 0, or -1 with ERROR filled. */
	int (*make)(struct lock *lock, struct error *error);
	/* Write LOCK->files.state->record into our object, which is open as FD.  Returns 0, or -1
	 * with ERROR filled. */
	int (*write)(const struct lock *lock, int fd, struct error *error);
	/* Give our object the lock's name.  Returns TAKEN; AGAIN if the name exists, or if a new
	 * object, made in another way, may get it; or FAILED. */
	enum outcome (*publish)(struct lock *lock, struct error *error);
	/* Called by publish_renamed() if the file system cannot rename without replacing: make
	 * another object under the lock's name, and fill it with publish_empty().  For a moment, it
	 * is empty there.  Returns the same as publish. */
	enum outcome (*make_empty)(struct lock *lock, struct error *error);
	/* Take over the lock that has the name or, with SLEEP, wait for its holder.  Returns the
	 * same as takeover_attempt(). */
	enum outcome (*attempt)(struct lock *lock, enum wait wait, struct error *error);
	/* Read the record of the object that is open as FD. */
	void (*read)(int fd, struct record *record);
	/* Does the name mean our object?  If not, errno is set: ENOENT if it means something
	 * else. */
	bool (*is_ours)(const struct lock *lock);
	/* Free the lock's name, which means the object open as FD: remove the object; -m rename:
	 * move it back.  Returns 0, or -1 with errno set. */
	int (*remove)(struct lock *lock, int fd);
	/* Give our lock a sign of life, by setting its times; never do so to another holder's
	 * lock. */
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

/* Get the status of LOCK's object: of NAME in DIRECTORY or, if NAME is empty, of what is open as
 * DIRECTORY.  With --stale the object's age counts.  So if the file system is not local, this then
 * asks the server, and not a cache.  Returns 0, or -1 with errno set. */
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

/* Write a new temporary name for an object into NAME.  KIND becomes a part of the name: "" for our
 * new object, "gone." for one that is about to be removed. */
void lockdir_temporary_name(const struct lock *lock, const char *kind, char name[NAME_SIZE]);

/* Create a file of our own in the directory.  NAME becomes its temporary name; "": the file has no
 * name.  Returns its descriptor, or -1 with errno set. */
int lockdir_create_file(const struct lock *lock, char name[NAME_SIZE], mode_t mode);

/* Remove objects that killed semlocks left behind under temporary names. */
void lockdir_sweep(const struct lock *lock);

/* lockdir_now() returns the time in ns since 1970 by the clock of the directory's file system, or
 * -1 if that fails.  That clock also dates the locks there, and our own may differ from it.
 * lockdir_mtime() returns the mtime in STATUS, in the same unit. */
int64_t lockdir_now(const struct lock *lock);
int64_t lockdir_mtime(const struct stat *status);

/* Read the record that is the contents of FD. */
void lockdir_read_record(int fd, struct record *record);

/* Sleep for DURATION ns, less than a second.  Returns 0, or -1 when a signal came. */
int lockdir_nap(int64_t duration);

/* ---- takeover.c: another lock has the name: is its holder alive? ---- */

/* Another lock has LOCK's name.  If its holder is dead, remove that lock; otherwise, with SLEEP,
 * wait for the holder.  Returns AGAIN if that lock is gone or has changed: the caller may publish
 * its own object now.  Returns BUSY if that lock is held or, with SLEEP, if a signal ended the
 * sleep.  Returns FAILED, with ERROR filled, if it cannot be examined or is not a lock of this
 * method. */
enum outcome takeover_attempt(struct lock *lock, enum wait wait, struct error *error);

/* A method's idle: is the lock free, or its holder dead? */
enum outcome takeover_idle(struct lock *lock, struct error *error);

/* Return the verdict on RECORD, of an object with STATUS.  The caller must also check flock(2): it
 * is not considered here.  NOW is the time in ns since 1970; if NOW is 0, this makes a file to
 * learn the time.  So a caller that must change nothing passes the time. */
enum verdict takeover_judge(const struct lock *lock, const struct record *record,
    const struct stat *status, int64_t now);

/* May the lock be taken over?  If VERDICT is DEAD, yes.  If VERDICT is UNKNOWN, only with --stale,
 * and only if the last sign of life, STATUS's mtime, is older than --stale says. */
bool takeover_allowed(struct lock *lock, enum verdict verdict, const struct stat *status);

/* The lock cannot be taken over now: unflock FD, the lock's object (-1: not open), and with SLEEP
 * wait until the lock may be free.  PID is the living holder; 0: none is known.  Returns BUSY, or
 * what foreign_holder_await() returns. */
enum outcome takeover_wait(struct lock *lock, int fd, enum wait wait, pid_t pid);

/* If the ctime in STATUS is later than the mtime, set the mtime to the ctime.  A file may get the
 * lock's name, by rename(2) or link(2), long after it was written.  On most file systems, these
 * calls set the ctime. */
void takeover_note_naming(struct stat *status);

/* Wait for a holder that does not use flock(2): sleep until something happens to the lock's name,
 * until process PID (0: none is known) ends, or until it is time to examine the lock again.
 * DIES_WITH_IT: the lock is not released before that process ends.  Returns AGAIN if the lock is to
 * be examined, or BUSY if a signal came.
 *
 * Unless DIES_WITH_IT, the first of several calls only begins to listen.  It returns AGAIN at once,
 * because the lock may have changed before. */
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

/* Move FD, our new object, above the standard descriptors, and set its mode to MODE if the user
 * gave a mode.  Returns the new descriptor.  If that fails, or if FD is -1, returns -1 with errno
 * set, and FD is closed. */
int publish_set_up(const struct lock *lock, int fd, mode_t mode);

/* Link FD, a file made by lockdir_create_file(), under the lock's name.  Returns 0, or -1 with
 * errno set. */
int publish_link(const struct lock *lock, int fd);

/* Flock FD; signals do not interrupt this.  Returns 0, or -1 with errno set: EWOULDBLOCK if another
 * process has kept it flocked for a second. */
int publish_flock(int fd);

/* Make LOCK's record name the command's process.  Returns false if that process does not exist yet:
 * the caller then returns NEEDS_CHILD. */
bool publish_describe(struct lock *lock);

/* Write LOCK->files.state->record into FD, which is an empty file.  Returns 0, or -1 with ERROR
 * filled. */
int publish_record(const struct lock *lock, int fd, struct error *error);

/* Does errno mean that the file system does not support the call that failed? */
bool publish_unsupported(void);

/* The publish function of an object with a temporary name: rename it to the lock's name, replacing
 * nothing.  If the file system does not support that, call make_empty(). */
enum outcome publish_renamed(struct lock *lock, struct error *error);

/* FD is a new and empty object that has the lock's name already; -1: open it here.  FD replaces our
 * previous object, which is closed.  Flock FD, set MODE if the user gave a mode, and write the
 * record.  Returns TAKEN; AGAIN: the name means another object by now; or FAILED, with ERROR
 * filled. */
enum outcome publish_empty(struct lock *lock, int fd, mode_t mode, struct error *error);

/* ---- heartbeat.c ---- */

/* A method's guard and unguard.  Other programs can remove a lock made of files, or take it over
 * because it looks old.  So guard starts a thread, if the command's locks need one.  The thread
 * gives signs of life, which keep away waiters that go by age.  It also watches the locks: the
 * sooner the command ends after a loss, the less harm it does. */
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
