/* SPDX-License-Identifier: MIT */
/* lock/queue.h - tickets: waiters are served in the order in which they came.
 *
 * The kernel's own lock queues lose their order when a process overtakes, dies or times out.  So a
 * waiter draws a ticket: a write lock on one byte of a queue file, at an offset that
 * CLOCK_MONOTONIC gives.  While an earlier ticket is locked, the waiter sleeps on the nearest
 * earlier one; then it takes the lock itself, and gives its ticket up. Nothing ever needs repair:
 * the kernel drops the ticket of a process that dies.  The file's content is only a hint, the last
 * ticket drawn, which saves a search.
 *
 * The queue file is shared memory named after the lock's device and inode.  The first waiter makes
 * it, the last one to leave removes it.  It decides order, never exclusion nor progress: whether a
 * lock is deserted is asked of the lock itself (attempt.h), at times that no ticket can move.  A
 * fault of the queue costs order, and nothing else. */
#ifndef SEMLOCK_LOCK_QUEUE_H
#define SEMLOCK_LOCK_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lock/lock.h"
#include "lock/queue_trust.h"
#include "sys/deadline.h"

/* Ordinary tickets begin here; those of --first and --replace, in front, at 0. */
#define QUEUE_ORDINARY (INT64_C(1) << 61)
/* No ticket: the byte of the one process that draws a ticket and counts those of the others
 * (--queue-max). */
#define QUEUE_ADMISSION INT64_MAX

struct queue {
	int fd;         /* of its file; -1: not open */
	bool unusable;  /* no tickets: fall back to the kernel's order */
	int64_t ticket; /* our byte; 0: none drawn yet */
	int64_t last;   /* the hint at the ticket drawn before ours; 0: search */
	/* when to check whether the lock is deserted: ns, on clock_now()'s clock */
	int64_t check_at;
	bool lost_race;    /* a check found it deserted, and then another process took it first */
	unsigned sleepers; /* so many checks in a row found a process asleep in front of it */
	unsigned places;   /* draw no ticket where so many others have one; 0: no limit */
	bool full;         /* so many others have one */
	bool cleared;      /* what had its name and cannot be trusted has been removed */
	bool hostile;      /* a search took too long: no ticket counts any more */
	struct effort search;
	struct openness open;
};

/* Open LOCK's queue file, if there is one: else no process waits, or QUEUE is unusable.  Nothing is
 * drawn, and nothing is known of the file yet. */
void queue_open(struct queue *queue, const struct lock *lock);

/* Draw a ticket from LOCK's queue, which is opened unless QUEUE->fd is open already, and made if
 * there is none.  FRONT: a ticket before all ordinary ones, and not counted.  Returns false when
 * DEADLINE passes, when QUEUE->full, or when the queue cannot be used or trusted. */
bool queue_join(struct queue *queue, const struct lock *lock, bool front,
    const struct deadline *deadline);

/* Does a process wait in the open queue?  If it may not be used, it is closed, and removed where
 * that is permitted. */
bool queue_has_waiter(struct queue *queue, const struct lock *lock);

/* Is there a ticket before ours? */
bool queue_preceded(struct queue *queue);

/* Our place among those that have a ticket, from 1; 0: not known, the search would take too
 * long. */
unsigned queue_place(struct queue *queue);

/* Has another process a ticket at the front (--first, --replace)? */
bool queue_led_from_front(struct queue *queue);

enum turn {
	TURN_OURS,    /* no ticket is before ours any more */
	TURN_EXPIRED, /* the deadline has passed */
	TURN_CHECK,   /* QUEUE->check_at has passed: is the lock deserted? */
	TURN_BROKEN   /* tickets do not work here after all */
};

/* With a ticket: sleep until it is our turn, DEADLINE, or QUEUE->check_at.
 * queue_join() sets that to a second later; after TURN_CHECK, the caller sets it, and may call
 * again.  If it has passed before the call, the caller has given the lock back: TURN_CHECK at once.
 * The caller ends with wakeup_off(). */
enum turn queue_await(struct queue *queue, const struct deadline *deadline);

/* Give the ticket up, for the next one's turn.  The last process to leave removes the queue file.
 * Copes with a queue that is not open. */
void queue_leave(struct queue *queue, const struct lock *lock);

#endif
