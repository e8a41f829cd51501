/* SPDX-License-Identifier: MIT */
/* owners/proc_snapshot.h - what /proc says of one lock, at about one moment. */
#ifndef SEMLOCK_OWNERS_PROC_SNAPSHOT_H
#define SEMLOCK_OWNERS_PROC_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

#include "lock/lock.h"
#include "report/error.h"
#include "sys/open_fds.h"

enum { SNAPSHOT_LOCK, SNAPSHOT_QUEUE, SNAPSHOT_FILES };

/* A line of /proc/locks about the lock's file, or its queue's. */
struct listed_lock {
	struct procfs_lock lock;
	unsigned file;  /* SNAPSHOT_LOCK or SNAPSHOT_QUEUE */
	bool accounted; /* see proc_snapshot_account() */
};

struct proc_snapshot {
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
 * both times.  Returns 0, or -1 with ERROR filled: the file cannot be reached, or there is no
 * /proc/locks. */
int proc_snapshot_take(struct proc_snapshot *snapshot, const struct lock *lock, struct error *error);

/* The same for an open LOCK made of files.  OBJECT: a descriptor of what its holder has under
 * flock(2); -1: there is none. */
int proc_snapshot_take_object(struct proc_snapshot *snapshot, const struct lock *lock, int object,
    struct error *error);

/* Mark a line of SNAPSHOT about FILE that has LOCK, and is not marked yet.  Returns whether there was one. */
bool proc_snapshot_account(struct proc_snapshot *snapshot, unsigned file, const struct procfs_lock *lock);

void proc_snapshot_forget(struct proc_snapshot *snapshot);

#endif
