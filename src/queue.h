/* queue.h - tickets: waiters are served in the order in which they came.
 *
 * The kernel's own lock queues are in order only until somebody barges in, dies or
 * times out.  So a waiter takes a ticket: a write lock on one byte of a queue file, at
 * an offset drawn from the monotonic clock.  While an earlier ticket is locked, it
 * sleeps on the nearest earlier one; then it takes the lock itself, and gives the
 * ticket up.  There is nothing to repair: the kernel drops the ticket of whoever dies,
 * and all that the file says is a guess at the last ticket drawn, which saves a search.
 *
 * The queue file is shared memory named after the lock's device and inode.  It is made when
 * somebody has to wait, and removed by the last to leave.  It decides order, never exclusion: whatever is
 * wrong with it costs order, and nothing else. */
#ifndef SEMLOCK_QUEUE_H
#define SEMLOCK_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "deadline.h"
#include "report.h"

struct lock;

struct queue {
	int fd;
	int64_t ticket; /* the byte that is ours; 0: none drawn yet */
	int64_t oldest; /* the oldest ticket when we last looked */
	int64_t last;   /* the one drawn before ours, it is said; 0: search */
};

enum queue_state {
	QUEUE_OPEN,
	QUEUE_ABSENT,  /* nobody is waiting */
	QUEUE_UNUSABLE /* no tickets here: the kernel's order has to do */
};

/* Open LOCK's queue to look at it.  Nothing is drawn. */
enum queue_state queue_open(struct queue *queue, const struct lock *lock);

/* Draw a ticket from LOCK's queue: from the one that queue_open() has opened, else it is opened,
 * and made if there is none.  Returns false when that cannot be done before DEADLINE, or the
 * queue is not to be trusted. */
bool queue_join(struct queue *queue, const struct lock *lock, const struct deadline *deadline);

/* Is nobody waiting? */
bool queue_empty(const struct queue *queue);

enum turn {
	TURN_OURS,    /* nobody is before us any more */
	TURN_EXPIRED, /* the deadline has passed */
	TURN_STALLED, /* for a second nothing has moved: the first in the queue may be stopped */
	TURN_BROKEN   /* tickets do not work here after all */
};

/* With a ticket: sleep until it is our turn, DEADLINE, or a second without any movement; may
 * be called again after TURN_STALLED.  alarm_off() is left to the caller. */
enum turn queue_await(struct queue *queue, const struct deadline *deadline);

/* Has the oldest ticket still not moved since the last TURN_STALLED? */
bool queue_stalled(struct queue *queue);

/* Give the ticket up: the next one's turn.  Whoever is the last to leave removes the queue.
 * Copes with one that is not open. */
void queue_leave(struct queue *queue, const struct lock *lock);

/* LOCK's file has been removed: so may its queue be, for no newcomer can find it. */
void queue_remove(const struct lock *lock);

#endif
