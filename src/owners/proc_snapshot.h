/* owners/proc_snapshot.h - all that /proc says about one lock, at about one moment. */
#ifndef SEMLOCK_OWNERS_PROC_SNAPSHOT_H
#define SEMLOCK_OWNERS_PROC_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

#include "sys/open_fds.h"
#include "lock/lock.h"
#include "sys/proc.h"
#include "report/error.h"

enum { SNAPSHOT_LOCK, SNAPSHOT_QUEUE, SNAPSHOT_FILES };

/* A line of the kernel's list of locks that is about the lock's file, or its queue's. */
struct listed {
	struct procfs_lock lock;
	unsigned file;
	bool accounted; /* we know whose it is: for the use of whoever reads the scene */
};

struct proc_snapshot {
	struct identity files[SNAPSHOT_FILES];
	struct {
		unsigned major, minor;
	} devices[SNAPSHOT_FILES]; /* as the kernel's list names them */
	unsigned nfiles; /* 0: the lock's file is not there; 1: nobody has had to queue */
	struct listed *listed;
	size_t nlisted;
	struct open_fds open_fds;
};

/* Look.  What changes while we look is not in it: a lock counts if it was listed before and
 * after.  Returns 0, or -1 with ERROR filled: the file cannot be reached, or there is no list. */
int proc_snapshot_take(struct proc_snapshot *snapshot, const struct lock *lock, struct error *error);

/* The same for an open LOCK that is made of files: OBJECT is a descriptor of what its holder
 * has under flock(2), or -1. */
int proc_snapshot_take_object(struct proc_snapshot *snapshot, const struct lock *lock, int object, struct error *error);

void proc_snapshot_forget(struct proc_snapshot *snapshot);

#endif
