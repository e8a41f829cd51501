/* SPDX-License-Identifier: MIT */
/* owners/sources.h - where a lock's owners are read from: /proc, records and servers.  A file each. */
#ifndef SEMLOCK_OWNERS_SOURCES_H
#define SEMLOCK_OWNERS_SOURCES_H

#include "owners/owners.h"
#include "owners/proc_snapshot.h"

/* kernel_owners.c: add the holders of the kernel lock to FOUND, which is empty, and mark their lines in
 * SNAPSHOT as accounted for.  All processes that share a lock are one holder. */
void kernel_owners_add(struct owners *found, struct proc_snapshot *snapshot, unsigned kinds);

/* waiters.c: add the waiters to FOUND, in the order of their turns: first those in the kernel's own queue
 * (the first of semlock's queue, and programs that do not know that queue), then by their tickets. */
void waiters_add(struct owners *found, const struct proc_snapshot *snapshot, unsigned kinds);

/* record_owners.c: add to FOUND, which is empty, the owners of LOCK, which is made of files: at most one holder, dead
 * or alive, and the waiters.  /proc shows the flock that semlock keeps on a held lock; the record in
 * the lock is any user's word, judged as process_alive.h says.
 * Returns 1; 0 if an owner may have been missed, so that the look is to be repeated; or -1 with ERROR filled. */
int record_owners_add(struct owners *found, const struct lock *lock, struct error *error);

/* server_owners.c: add the holder, or with WAITS the waiter, that TEXT describes ("mode=... pid=...
 * host=... since=... note=..."; a field that is missing is unknown). */
void server_owners_add(struct owners *found, const char *method, const char *text, bool waits);

/* Ask LOCK's server for its owners.  Returns 0, or -1 with ERROR filled. */
int server_owners_ask(struct owners *found, const struct lock *lock, struct error *error);

#endif
