/* SPDX-License-Identifier: MIT */
/* owners/sources.h - where a lock's owners are read from: /proc, records and servers.  A file
 * each. */
#ifndef SEMLOCK_OWNERS_SOURCES_H
#define SEMLOCK_OWNERS_SOURCES_H

#include "lock/queue.h"
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

/* ---- a family of methods, and what differs by it but locking ---- */

/* A look that has begun. */
struct search {
	struct search_terms *terms;
	struct allowance limit;
	bool in_pieces;                    /* LOOK_PIECE may be returned */
	const struct known_members *known; /* look into these processes alone; NULL: into all */
};

/* What has come of it. */
enum look {
	LOOK_WHOLE,
	LOOK_MISSED, /* an owner, or may have: it is to be repeated, with another walk */
	LOOK_PIECE,  /* it goes on when it is repeated */
	LOOK_FAILED  /* ERROR is filled */
};

struct source {
	/* Add LOCK's owners to FOUND, which is empty. */
	enum look (*add)(struct owners *found, const struct lock *lock, struct search *search,
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

/* ---- snapshot.c: what /proc says of one lock ---- */

enum { SNAPSHOT_LOCK, SNAPSHOT_QUEUE, SNAPSHOT_FILES };

/* A line of /proc/locks about the lock's file, or its queue's. */
struct listed_lock {
	struct procfs_lock lock;
	unsigned file;  /* SNAPSHOT_LOCK or SNAPSHOT_QUEUE */
	bool accounted; /* its holder is known */
};

struct snapshot {
	struct identity files[SNAPSHOT_FILES];
	struct {
		unsigned major, minor;
	} devices[SNAPSHOT_FILES]; /* as /proc/locks names them */
	unsigned nfiles;           /* 0: the lock's file does not exist; 1: its queue's does not */
	char queue[QUEUE_PATH_SIZE]; /* the path of its queue's */
	struct open_fds open_fds;
	/* /proc/locks, as far as it is about these files */
	enum {
		LIST_UNREAD,
		LIST_OLDER, /* than this look: a line that it has may be gone */
		LIST_FRESH
	} list_state;
	struct listed_lock *listed;
	size_t nlisted;
};

/* Look for the descriptors on LOCK's file and its queue's.  Returns 0, or -1 with ERROR filled: the
 * file cannot be reached. */
int snapshot_take(struct snapshot *snapshot, const struct lock *lock, struct search *search,
    struct error *error);

/* The same for an open LOCK made of files.  OBJECT: a descriptor of what its holder has under
 * flock(2); -1: there is none. */
int snapshot_take_object(struct snapshot *snapshot, const struct lock *lock, int object,
    struct search *search, struct error *error);

/* Is there a process that has the lock's file open, has locked nothing of it, and has no ticket? It
 * may wait in the kernel. */
bool snapshot_has_idler(const struct snapshot *snapshot);

/* Read /proc/locks, if SEARCH still may; TWICE: a second time if no line is about the lock's file,
 * and one may have been left out: the kernel gives the list a page at a time, and it may change
 * between two of them.  Returns 0, or -1 with ERROR filled: it cannot be read, or there is no
 * memory. */
int snapshot_list(struct snapshot *snapshot, struct search *search, bool twice,
    struct error *error);

/* The line about the lock's file that has LOCK, and is not accounted for yet; NULL: none. */
struct listed_lock *snapshot_line(const struct snapshot *snapshot, const struct procfs_lock *lock);

void snapshot_forget(struct snapshot *snapshot);

/* ---- kernel_owners.c: kernel locks ---- */

/* Add the holders of the kernel lock to FOUND, which is empty.  All processes that share a lock are
 * one holder. */
enum look kernel_owners_add(struct owners *found, struct snapshot *snapshot, unsigned kinds,
    struct search *search, struct error *error);

/* In a PID namespace, as in a container, the kernel shows no lock of a process outside of it.
 * There: has a process the file or directory PATH locked, by a lock of KINDS?  To ask for a flock
 * is to take it for a moment. */
bool kernel_owner_outside(const char *path, unsigned kinds);

/* ---- waiters.c ---- */

/* Add LOCK's waiters to FOUND, in the order of their turns: first those in the kernel's
 * own queue, if SNAPSHOT has a list of them (the first of semlock's queue, and programs that do not
 * know that queue), then by their tickets. */
void waiters_add(struct owners *found, struct snapshot *snapshot, unsigned kinds,
    struct search *search);

/* ---- record_owners.c: locks made of files ---- */

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
