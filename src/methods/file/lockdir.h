/* SPDX-License-Identifier: MIT */
/* methods/file/lockdir.h - the directory that a lock made of files is in, and the names in it.
 *
 * All calls are relative to one descriptor of that directory: neither chdir(2) nor a renaming
 * of the directory makes them miss it. */
#ifndef SEMLOCK_METHODS_FILE_LOCKDIR_H
#define SEMLOCK_METHODS_FILE_LOCKDIR_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "lock/lock.h"
#include "methods/file/owner_record.h"

enum { NAME_SIZE = 256 };

/* A lock made of files, LOCK->file: what all its methods share. */
struct file_lock {
	const struct object *object; /* how this method's lock is made */
	bool local;     /* the file system is this kernel's alone: its locks and PIDs prove something */
	bool by_age;    /* NFS 3 with --stale, where a dead machine's flock stays: the object is under flock(2)
			 * only while a process removes it, and signs of life alone prove life */
	bool held;
	bool ready;     /* our object is made, flocked, and names the command */
	bool inherited; /* the command has its descriptor */
	bool named;     /* O_TMPFILE and linkat(2) do not work here */
	char temporary[NAME_SIZE]; /* the name of our object until it gets the lock's; "": none */
	struct record record;      /* what our object says */
	int second;     /* where flock(2) depends on the name: the lock, opened by its name; -1 */
	int notify;     /* inotify on the directory, while a foreign holder has the lock; -1 */
	int64_t pause;  /* ns of the last sleep for a foreign holder; 0: none yet */
};

/* What distinguishes one kind of lock object from another.  A symbolic link has no make, write and read; the file of
 * rename, whose method has a take of its own, has no make, write, publish and attempt. */
struct object {
	const char *what; /* "a regular file", for messages */
	mode_t type;      /* S_IFREG, S_IFDIR or S_IFLNK */
	bool pid_only;    /* the PID is all that is written into it */

	/* Make ours, unpublished, and set LOCK->fd.  Returns 0, or -1 with ERROR filled. */
	int (*make)(struct lock *lock, struct error *error);
	/* Write LOCK->file->record into it.  Returns 0, or -1 with ERROR filled. */
	int (*write)(struct lock *lock, struct error *error);
	/* Give it the lock's name: TAKEN; AGAIN when the name is taken; FAILED. */
	enum outcome (*publish)(struct lock *lock, struct error *error);
	/* When the name is taken: takeover_attempt(), or its like. */
	enum outcome (*attempt)(struct lock *lock, enum wait wait, struct error *error);
	/* Read the record of the object that is open as FD. */
	void (*read)(int fd, struct record *record);
	/* Does the name mean our object?  If not, errno is set: ENOENT if it means something else. */
	bool (*is_ours)(const struct lock *lock);
	/* Remove the lock's name, which means FD.  Returns 0, or -1 with errno set. */
	int (*remove)(struct lock *lock, int fd);
	/* Give a sign of life: never to another holder's lock. */
	void (*beat)(struct lock *lock);
};

/* A method's open: split LOCK's name, open its directory, and make LOCK->file. */
int lockdir_open(struct lock *lock, struct error *error);

/* The status of NAME in DIRECTORY, or of DIRECTORY if NAME is empty: of LOCK's object, whose age may count.
 * With --stale off local file systems the server is asked, whatever is in a cache.  Returns 0, or -1 with
 * errno set. */
int lockdir_status(const struct lock *lock, int directory, const char *name, struct stat *status);

/* A method's current: does LOCK's name still lead into that directory? */
bool lockdir_current(const struct lock *lock);

/* Does NAME in the directory mean what is open as FD?  If not, errno is set: ENOENT if it means something
 * else. */
bool lockdir_same(const struct lock *lock, const char *name, int fd);

/* The same for the lock's name and LOCK->fd. */
bool lockdir_is_ours(const struct lock *lock);

/* LOCK could not be released, errno says why: it was lost, or is stuck. */
void lockdir_not_released(struct lock *lock);

/* A method's stuck_reason. */
const char *lockdir_stuck_reason(const struct lock *lock);

/* Open the directory FD once more, to list it.  Returns NULL with errno set if that fails. */
DIR *lockdir_list(int fd);

/* Fill ERROR with WHAT, by errno: ERROR_SYSTEM if that names a resource that has run out, else KIND.  Returns -1. */
int lockdir_failed(struct error *error, enum kind kind, const char *what);

/* The same for the lock's name, by errno.  Returns AGAIN if it exists, else FAILED. */
enum outcome lockdir_not_named(struct error *error);

/* Fill ERROR: what has the lock's name is no lock of LOCK's method.  Returns -1. */
int lockdir_not_a_lock(const struct lock *lock, struct error *error);

/* Create a file of our own in the directory: without a name, or else with the one that
 * it puts into LOCK->file->temporary.  Returns its descriptor, or -1 with errno set. */
int lockdir_create_file(struct lock *lock, mode_t mode);

/* Put a name for an object of ours that has not got the lock's name yet, or not any more, into
 * LOCK->file->temporary.  KIND, "" or "gone.", is a part of it. */
void lockdir_temporary_name(struct lock *lock, const char *kind);

/* Remove what killed semlocks have left under such names. */
void lockdir_sweep(const struct lock *lock);

/* The time in ns since 1970 by the clock of the directory's file system: a lock's age must not
 * depend on whose clock is right.  -1: unknown. */
int64_t lockdir_now(const struct lock *lock);
int64_t lockdir_mtime(const struct stat *status);

/* Read the record that is the contents of FD. */
void lockdir_read_record(int fd, struct record *record);

/* Sleep for DURATION ns, less than a second.  Returns 0, or -1 when a signal came. */
int lockdir_nap(int64_t duration);

#endif
