/* SPDX-License-Identifier: MIT */
/* lock/attempt.h - one attempt at an open lock, without regard to the queue. */
#ifndef SEMLOCK_LOCK_ATTEMPT_H
#define SEMLOCK_LOCK_ATTEMPT_H

#include "lock/lock.h"

/* Take LOCK, and a slot of it if it has slots, without sleeping. */
enum outcome attempt_try(struct lock *lock, struct error *error);

/* Sleep in the lock call until LOCK is taken; BUSY when WAIT's deadline has passed.  NULL: do not
 * sleep. */
enum outcome attempt_sleep(struct lock *lock, const struct wait_options *wait, struct error *error);

/* Unlock LOCK, and keep it open. */
void attempt_drop(struct lock *lock);

/* When a lock counts as deserted: found free COUNT times over SPELL ns; and then, for HOLD ns in
 * which we hold it, no other process begins to wait for it in the kernel. */
struct checks {
	int count;
	int64_t spell, hold;
};

/* Take LOCK if it is deserted.  The CHECKS are irregularly spaced, so that a lock handed on among
 * living waiters is soon found busy.  BUSY: not free after *SEEN checks. */
enum outcome attempt_deserted(struct lock *lock, const struct checks *checks, int *seen,
    struct error *error);

/* A number of ns from 0 to MOST - 1, a different one for each call and process. */
int64_t attempt_jitter(int64_t most);

/* ---- which locks a descriptor of ours carries already, from /proc/self/fdinfo; without /proc:
 * none ---- */

enum held_mode { HELD_NONE, HELD_SHARED, HELD_EXCLUSIVE };

struct held {
	/* of LOCK's kind; an exclusive lock of a part of its range counts as shared */
	enum held_mode mode;
	bool more; /* a lock of another kind as well, or of other bytes than LOCK's */
	int slot;  /* of LOCK, from 0; -1: none */
};

/* What LOCK->fd, the caller's, carries; nothing, if we have opened it ourselves. */
struct held held_read(const struct lock *lock);

/* ---- slots (-j): up to N holders of one lock, each in a slot ----
 *
 * A slot is a lock on one byte, which the kernel releases when its holder dies.  Where the method's
 * own lock is of another kind (flock), it is taken first, shared: it excludes plain exclusive
 * holders. */

/* Take the first free slot of LOCK, or as many as it is to take, and set LOCK->slot and
 * LOCK->kernel.slots.  BUSY: too few are free, and none is taken. */
enum outcome slots_try(struct lock *lock, struct error *error);

/* Sleep until a slot is free, and take it; of several, take each as soon as it is free.  BUSY when
 * WAIT's deadline has passed: what has been collected has to be dropped. */
enum outcome slots_sleep(struct lock *lock, const struct wait_options *wait, struct error *error);

/* Unlock the slots, if there are any. */
void slots_drop(struct lock *lock);

/* "0,3": the slots that LOCK holds; NULL without memory.  It lasts until the process ends. */
const char *slots_text(const struct lock *lock);

#endif
