/* SPDX-License-Identifier: MIT */
/* owners/sources.h - where a lock's owners are read from: /proc, records and servers.  A file
 * each. */
#ifndef SEMLOCK_OWNERS_SOURCES_H
#define SEMLOCK_OWNERS_SOURCES_H

#include "owners/owners.h"
#include "sys/open_fds.h"

/* ---- owners_list.c: the list that they fill ---- */

/* Append an owner, all zero.  Returns NULL, and FOUND has failed, when there is no memory. */
struct owner *owners_add(struct owners *found);

/* Note that OWNER's lock is held through process PID, too, by its descriptor FD (-1: not known).
 * Without memory, FOUND has failed. */
void owners_join(struct owners *found, struct owner *owner, pid_t pid, int fd);

void owners_drop(struct owners *found, size_t i);

/* Is LOCK one of KINDS?  A slot of a flock is a record lock, and counts as a flock. */
bool owners_count_lock(const struct procfs_lock *lock, unsigned kinds);

/* Set OWNER's method, mode, slot and bytes from LOCK, a line of /proc. */
void owner_describe(struct owner *owner, const struct procfs_lock *lock);

/* ---- kernel_owners.c: /proc ---- */

enum { SNAPSHOT_LOCK, SNAPSHOT_QUEUE, SNAPSHOT_FILES };

/* A line of /proc/locks about the lock's file, or its queue's. */
struct listed_lock {
	struct procfs_lock lock;
	unsigned file;  /* SNAPSHOT_LOCK or SNAPSHOT_QUEUE */
	bool accounted; /* its holder is known */
};

/* What /proc says of one lock, at about one moment. */
struct snapshot {
	struct identity files[SNAPSHOT_FILES];
	struct {
		unsigned major, minor;
	} devices[SNAPSHOT_FILES]; /* as /proc/locks names them */
	unsigned nfiles;           /* 0: the lock's file does not exist; 1: its queue's does not */
	struct listed_lock *listed;
	size_t nlisted;
	struct open_fds open_fds;
};

/* Look at LOCK.  /proc/locks is read before and after the descriptors: a line counts if it is there
 * both times. Returns 0, or -1 with ERROR filled: the file cannot be reached, or there is no
 * /proc/locks. */
int snapshot_take(struct snapshot *snapshot, const struct lock *lock, struct error *error);

/* The same for an open LOCK made of files.  OBJECT: a descriptor of what its holder has under
 * flock(2); -1: there is none, and no line is about it. */
int snapshot_take_object(struct snapshot *snapshot, const struct lock *lock, int object,
    struct error *error);

void snapshot_forget(struct snapshot *snapshot);

/* Add the holders of the kernel lock to FOUND, which is empty, and mark their lines in SNAPSHOT as
 * accounted for.  All processes that share a lock are one holder. */
void kernel_owners_add(struct owners *found, struct snapshot *snapshot, unsigned kinds);

/* In a PID namespace, as in a container, the kernel shows no lock of a process outside of it.
 * There: has a process the file or directory PATH locked, by a lock of KINDS?  To ask for a flock
 * is to take it for a moment. */
bool kernel_owner_outside(const char *path, unsigned kinds);

/* waiters.c: add the waiters to FOUND, in the order of their turns: first those in the kernel's own
 * queue (the first of semlock's queue, and programs that do not know that queue), then by their
 * tickets. */
void waiters_add(struct owners *found, const struct snapshot *snapshot, unsigned kinds);

/* ---- record_owners.c: locks made of files ---- */

/* Add to FOUND, which is empty, the owners of LOCK: at most one holder, dead or alive, and the
 * waiters.  /proc shows the flock that semlock keeps on a held lock; the record in the lock is any
 * user's word, judged as owner_record.h says. Returns 1; 0 if an owner may have been missed, so
 * that the search is to be repeated; or -1 with ERROR filled. */
int record_owners_add(struct owners *found, const struct lock *lock, struct error *error);

/* Does process PID, which was found to be LOCK's holder, hold it still?  Root or PID's user must
 * own the lock; and PID has it under flock(2), or is named in its record by PID and start, of this
 * boot and PID namespace, as the command or its semlock. */
bool record_owner_holds(const struct lock *lock, pid_t pid);

/* The descriptor by which this process has LOCK under flock(2): it runs under the lock, and has
 * inherited it.  Root or this process's user must own the lock: its name may be a link to a file
 * that is flocked for another purpose. -1: none. */
int record_owner_inherited(const struct lock *lock);

/* The method of the lock NAME, if a full record in it tells; else NULL. */
const struct method *record_method(const char *name);

/* Is NAME, which HOLDER has under flock(2), a lock of -m link: a file with the bare PID of that
 * process in it? */
bool record_is_link(const char *name, const struct owner *holder);

/* ---- server_owners.c ---- */

/* Add the holder, or with WAITS the waiter, that TEXT describes ("mode=... pid=... host=...
 * since=... note=..."; a field that is missing is unknown). */
void server_owners_add(struct owners *found, const char *method, const char *text, bool waits);

/* Ask LOCK's server for its owners.  Returns 0, or -1 with ERROR filled. */
int server_owners_ask(struct owners *found, const struct lock *lock, struct error *error);

/* Without asking the server: add SEMLOCK, whose child is the helper for URL, if it holds the lock,
 * or with WAITS if it waits for it. */
void server_owners_see(struct owners *found, const char *url, pid_t semlock, bool waits);

#endif
