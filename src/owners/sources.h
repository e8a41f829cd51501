/* SPDX-License-Identifier: MIT */
/* owners/sources.h - where the owners of a lock are looked up: /proc, records, servers.  One file
 * for each. */
#ifndef SEMLOCK_OWNERS_SOURCES_H
#define SEMLOCK_OWNERS_SOURCES_H

#include "lock/queue.h"
#include "owners/owners.h"
#include "sys/open_fds.h"

/* ---- owners_list.c: the list that they fill ---- */

/* Append an owner, zeroed but for its slots (-1: unknown).  Returns NULL if there is no memory;
 * then FOUND->seen is SEEN_FAILED. */
struct owner *owners_add(struct owners *found);

/* Note that OWNER's lock is also held through process PID, by its descriptor FD (-1: unknown).
 * Without memory, FOUND->seen is SEEN_FAILED. */
void owners_join(struct owners *found, struct owner *owner, pid_t pid, int fd);

/* Remove owner I, from 0, from FOUND. */
void owners_drop(struct owners *found, size_t i);

/* Is LOCK one of KINDS?  A flock slot is a record lock, but counts as a flock. */
bool owners_count_lock(const struct procfs_lock *lock, unsigned kinds);

/* Set OWNER's method, mode, slot and bytes from LOCK, a line of /proc. */
void owner_describe(struct owner *owner, const struct procfs_lock *lock);

/* ---- what depends on the family of methods ---- */

/* A look that has begun. */
struct search {
	struct search_terms *terms;
	struct allowance limit;
	bool in_pieces;                    /* SEARCHED_PIECE may be returned */
	const struct known_members *known; /* look into these processes alone; NULL: into all */
};

/* How a look ended. */
enum searched {
	SEARCHED_WHOLE,
	SEARCHED_MISSED, /* an owner was missed, or may have been: repeat it with another walk */
	SEARCHED_PIECE,  /* repeat it to continue */
	SEARCHED_FAILED  /* ERROR is filled */
};

struct source {
	/* Add LOCK's owners to FOUND, which is empty. */
	enum searched (*add)(struct owners *found, const struct lock *lock, struct search *search,
	    struct error *error);
	/* owners_verify() */
	bool (*verify)(const struct lock *lock, pid_t pid, struct fd_walk *walk);
	/* nesting_inherited() */
	enum nesting (*inherited)(const struct lock *lock, int *fd);
};

extern const struct source kernel_source; /* kernel_owners.c */
extern const struct source record_source; /* record_owners.c: locks made of files */
extern const struct source server_source; /* server_owners.c */

/* ---- kernel_nesting.c ---- */

/* The kernel source's INHERITED. */
enum nesting kernel_nesting(const struct lock *lock, int *fd);

/* ---- snapshot.c: what /proc shows of one lock ---- */

/* A line of /proc/locks about the lock's file. */
struct listed_lock {
	struct procfs_lock lock;
	bool accounted; /* its holder is known */
};

struct snapshot {
	struct identity file;   /* inode 0: it does not exist */
	unsigned major, minor;  /* its device, as /proc/locks names it */
	struct tickets tickets; /* of its queue */
	/* The queue's file, if this process may not open it: then its tickets are looked up in
	 * /proc/locks.  Else inode 0. */
	struct identity closed_queue;
	struct open_fds open_fds;
	bool without_waiters; /* OPEN_FDS lacks those of the processes that have tickets */
	/* /proc/locks, as far as it is about the file */
	enum {
		LIST_UNREAD,
		LIST_OLDER, /* read before this look: some of its locks may be gone */
		LIST_FRESH
	} list_state;
	struct listed_lock *listed;
	size_t nlisted;
};

/* Look up the descriptors on LOCK's file, and the tickets in its queue.  Returns 0, or -1 with
 * ERROR filled: the file cannot be reached. */
int snapshot_take(struct snapshot *snapshot, const struct lock *lock, struct search *search,
    struct error *error);

/* The same for an open LOCK made of files.  OBJECT: a descriptor of what its holder has under
 * flock(2), or -1. */
int snapshot_take_object(struct snapshot *snapshot, const struct lock *lock, int object,
    struct search *search, struct error *error);

/* Add the descriptors of the processes that have tickets, if they were left out.  Returns whether
 * they were. */
bool snapshot_add_waiters(struct snapshot *snapshot);

/* Does a process have the lock's file open without a lock on it and without a ticket?  It may wait
 * in the kernel. */
bool snapshot_has_idler(const struct snapshot *snapshot);

/* Read /proc/locks, if SEARCH still may; else use what SEARCH has read before.  TWICE: read it
 * again if no line is about the lock's file, because a line may be missing: the kernel returns the
 * list a page at a time, and the list may change in between.  Returns 0, or -1 with ERROR filled:
 * it cannot be read, or there is no memory. */
int snapshot_list(struct snapshot *snapshot, struct search *search, bool twice,
    struct error *error);

/* Find the line about the lock's file that shows LOCK and is not accounted for yet; NULL: none. */
struct listed_lock *snapshot_line(const struct snapshot *snapshot, const struct procfs_lock *lock);

/* Free what SNAPSHOT holds, and clear it. */
void snapshot_forget(struct snapshot *snapshot);

/* ---- kernel_owners.c: kernel locks ---- */

/* Add the holders of the kernel lock to FOUND, which is empty.  All processes that share a lock are
 * one holder. */
enum searched kernel_owners_add(struct owners *found, struct snapshot *snapshot, unsigned kinds,
    struct search *search, struct error *error);

/* Is this process in a PID namespace, such as a container's, and does a process outside have the
 * file or directory PATH locked, by a lock of KINDS?  (The caller has seen no holder inside.)  The
 * kernel does not show such a lock, so try: to find a flock, this takes one for a moment.  False in
 * the machine's first PID namespace. */
bool kernel_owner_outside(const char *path, unsigned kinds);

/* ---- waiters.c ---- */

/* Add the lock's waiters to FOUND, in the order of their turns.  First come those in the kernel's
 * own queue, if SNAPSHOT has lines of /proc/locks: the waiter with semlock's first ticket, and
 * programs that do not know semlock's queue.  Then come the other waiters, by their tickets. */
void waiters_add(struct owners *found, struct snapshot *snapshot, unsigned kinds,
    struct search *search);

/* ---- record_owners.c: locks made of files ---- */

/* Return the method of the lock NAME, if it contains a full record; else NULL. */
const struct method *record_method(const char *name);

/* Is NAME, which HOLDER has under flock(2), a lock of -m link: a file that contains only the PID of
 * HOLDER's process? */
bool record_is_link(const char *name, const struct owner *holder);

/* ---- server_owners.c ---- */

/* Add the holder, or with WAITS the waiter, that TEXT describes ("mode=... pid=... host=...
 * since=... note=..."; a missing field is unknown). */
void server_owners_add(struct owners *found, const char *method, const char *text, bool waits);

/* Ask LOCK's server for its owners.  Returns 0, or -1 with ERROR filled. */
int server_owners_ask(struct owners *found, const struct lock *lock, struct error *error);

/* Without asking the server: add SEMLOCK, whose child is the helper for URL, if it holds the lock;
 * or, with WAITS, if it waits for the lock. */
void server_owners_see(struct owners *found, const char *url, pid_t semlock, bool waits);

#endif
