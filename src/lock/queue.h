/* lock/queue.h - tickets: waiters are served in the order in which they came.
 *
 * The kernel's own lock queues are in order only until somebody barges in, dies or
 * times out.  So a waiter takes a ticket: a write lock on one byte of a queue file, at
 * an offset drawn from the monotonic clock.  While an earlier ticket is locked, it
 * sleeps on the nearest earlier one; then it takes the lock itself, and gives the
 * ticket up.  There is nothing to repair: the kernel drops the ticket of whoever dies,
 * and all that the file says is a guess at the last ticket drawn, which saves a search.
 *
 * The queue file is shared memory named after the lock's device and inode.  It is made when
 * a process has to wait, and removed by the last to leave.  It decides order, never exclusion, nor
 * progress: whether a lock is deserted is asked of the lock itself (attempt.h), at times that a
 * ticket cannot move.  Whatever is wrong with the queue costs order, and nothing else. */
#ifndef SEMLOCK_LOCK_QUEUE_H
#define SEMLOCK_LOCK_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "sys/deadline.h"
#include "report/error.h"

struct lock;

/* Ordinary tickets begin here; those in front, of --replace, at 0. */
#define QUEUE_ORDINARY (INT64_C(1) << 61)

struct queue {
	int fd;
	int64_t ticket; /* the byte that is ours; 0: none drawn yet */
	int64_t last;   /* the one drawn before ours, it is said; 0: search */
	int64_t look_at; /* when to look whether the lock is deserted, on clock_now()'s clock */
	bool beaten;    /* a look found it deserted until another process took it */
	bool cleared;   /* a file that was not to be trusted has been removed */
};

enum queue_state {
	QUEUE_OPEN,
	QUEUE_ABSENT,  /* nobody is waiting */
	QUEUE_UNUSABLE /* no tickets here: the kernel's order has to do */
};

/* Open LOCK's queue to look at it.  Nothing is drawn. */
enum queue_state queue_open(struct queue *queue, const struct lock *lock);

/* Draw a ticket from LOCK's queue: from the one that queue_open() has opened, else it is opened,
 * and made if there is none.  FRONT: one before all that are not in front.  Returns false when that
 * cannot be done before DEADLINE, or the queue is not to be trusted. */
bool queue_join(struct queue *queue, const struct lock *lock, bool front,
    const struct deadline *deadline);

/* Is nobody waiting? */
bool queue_empty(const struct queue *queue);

/* Is there a ticket before ours? */
bool queue_preceded(const struct queue *queue);

enum turn {
	TURN_OURS,    /* no ticket is before ours any more */
	TURN_EXPIRED, /* the deadline has passed */
	TURN_LOOK,    /* QUEUE->look_at has passed: is the lock deserted? */
	TURN_BROKEN   /* tickets do not work here after all */
};

/* With a ticket: sleep until it is our turn, DEADLINE, or QUEUE->look_at, which is a second after
 * queue_join(), and then the caller's to set; may be called again after TURN_LOOK.  alarm_off() is
 * left to the caller. */
enum turn queue_await(struct queue *queue, const struct deadline *deadline);

/* Give the ticket up: the next one's turn.  Whoever is the last to leave removes the queue.
 * Copes with one that is not open. */
void queue_leave(struct queue *queue, const struct lock *lock);

/* LOCK's file has been removed: so may its queue be, for no newcomer can find it. */
void queue_remove(const struct lock *lock);

#endif
