/* SPDX-License-Identifier: MIT */
/* owners/probe.h - a lock made of files, opened only to be examined; and which process holds it. */
#ifndef SEMLOCK_OWNERS_PROBE_H
#define SEMLOCK_OWNERS_PROBE_H

#include "lock/lock.h"
#include "methods/file/inspect.h"
#include "owners/owners.h"
#include "report/error.h"

struct probe {
	struct lock_spec spec;
	struct lock lock;
	struct lock_info info;
	struct child no_child;
};

/* Open LOCK anew: another thread may be using it.  Nothing is taken.  Returns 0, or -1 with ERROR
 * filled; PROBE is to be closed in either case. */
int probe_open(struct probe *probe, const struct lock *lock, struct error *error);

void probe_close(struct probe *probe);

/* Does RECORD name a process through which OWNER has the lock's file under flock(2), or a child of
 * such a process? */
bool probe_names(const struct owner *owner, const struct record *record);

/* OWNER has the lock's file under flock(2): as the lock's holder, not as a waiter?  RECORD is the
 * file's. */
bool probe_is_holder(const struct owner *owner, const struct record *record);

/* Is RECORD another host's, as far as it says? */
bool probe_other_host(const struct record *record);

/* Does process PID, which was found to be LOCK's holder, hold it still?  Root or PID's user must own
 * the lock; and PID has it under flock(2), or is named in its record by PID and start, of this boot
 * and PID namespace, as the command or its semlock. */
bool probe_verify(const struct lock *lock, pid_t pid);

/* The descriptor by which this process has LOCK under flock(2): it runs under the lock, and has inherited it.  Root or
 * this process's user must own the lock: its name may be a link to a file that is flocked for another purpose.
 * -1: none. */
int probe_inherited(const struct lock *lock);

/* In a PID namespace, as in a container, the kernel shows no lock of a process outside of it.  There: has a process
 * the file or directory PATH locked, by a lock of KINDS?  To ask for a flock is to take it for a moment. */
bool probe_locked_outside(const char *path, unsigned kinds);

/* Read the record of the lock NAME, if that is one of METHOD.  Returns its kind; RECORD_ABSENT: none. */
enum record_kind probe_record(const char *name, const struct method *method, struct record *record);

/* The method of the lock NAME, if a full record in it tells; else NULL. */
const struct method *probe_method(const char *name);

#endif
