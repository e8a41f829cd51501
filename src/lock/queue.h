/* SPDX-License-Identifier: MIT */
/* lock/queue.h - tickets: waiters are served in the order in which they came.
 *
 * The kernel's own lock queues lose their order when a process overtakes, dies or times out.  So a
 * waiter draws a ticket: a write lock on one byte of a queue file, at an offset that
 * CLOCK_MONOTONIC gives.  While an earlier ticket is locked, the waiter sleeps on the nearest
 * earlier one; then it takes the lock itself, and gives its ticket up.  Nothing ever needs repair:
 * the kernel drops the ticket of a process that dies.  The file's content is only a hint, the last
 * ticket drawn, which saves a search.
 *
 * A ticket is a lock of the process (F_SETLK), not of a descriptor: so the kernel says whose it is,
 * and no child inherits it.  But the kernel drops it when the process closes any descriptor of the
 * queue's file: a process that has drawn a ticket opens that file once, and closes it once.
 *
 * The queue file is shared memory named after the lock's device and inode.  The first waiter
 * creates it, and the last one to leave removes it.  It decides the order, but neither exclusion
 * nor progress: to see whether a lock is deserted, a waiter checks the lock itself (attempt.h), at
 * least every 100 s, whatever the tickets do.  A fault of the queue costs order, and nothing else.
 *
 * A ticket that supersedes others (--supersede) is marked: it is two bytes long.  A waiter with a
 * marked ticket gives up when it finds a later one.  So nobody is signalled, no mark outlives its
 * process, and the last of the marked waiters never gives up.
 *
 * Other waiters pass one that /proc shows to be stopped: its ticket does not count until it goes
 * on.  A waiter that does not come for another reason (its control group is frozen, it cannot be
 * seen from here, it is not a semlock) is passed only when the lock is found deserted. */
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
/* Not a ticket: with --queue-max, a process locks this byte while it draws a ticket and counts the
 * others. */
#define QUEUE_ADMISSION INT64_MAX

struct queue {
	int fd;         /* of its file; -1: not open */
	bool unusable;  /* no tickets: fall back to the kernel's order */
	int64_t ticket; /* our byte; 0: none drawn yet */
	int64_t last;   /* a hint: the ticket drawn before ours; 0: search */
	/* when to look whether those before us are stopped, and the lock deserted: ns, on
	 * clock_now()'s clock */
	int64_t look_at;
	int64_t seen; /* the ticket to sleep on after that look; -1: search */
	/* set by queue_pause(): the first ticket, and the last one that it counts if there are that
	 * many, else FAR is -1 */
	int64_t head, far;
	bool supersedes;  /* our ticket is marked */
	pid_t superseder; /* set by queue_superseded(); 0: it cannot be seen from here */
	unsigned places;  /* draw no ticket if this many others have one; 0: no limit */
	bool full;        /* this many others have one */
	bool cleared;     /* what had its name and was not trusted has been removed */
	bool hostile;     /* a search took too long: no ticket counts any more */
	struct effort search;
	struct openness open;
};

/* Open LOCK's queue file, if it exists; if not, no process waits, or QUEUE is unusable.  Nothing is
 * drawn, and the file is not checked yet. */
void queue_open(struct queue *queue, const struct lock *lock);

/* Draw a ticket from LOCK's queue, which is opened if it is not, and created if it does not exist.
 * FRONT: draw one before all ordinary tickets, whatever QUEUE->places says.  Returns false when
 * DEADLINE passes, when QUEUE->full, or when the queue is unusable or untrusted. */
bool queue_join(struct queue *queue, const struct lock *lock, bool front,
    const struct deadline *deadline);

/* Does a process that is not stopped wait in the open queue?  A queue that may not be used is
 * closed, and removed where that is permitted. */
bool queue_has_waiter(struct queue *queue, const struct lock *lock);

/* Is there an earlier ticket of a process that is not stopped? */
bool queue_preceded(struct queue *queue);

/* With a ticket of LOCK's queue: if another process has removed the queue's file, draw the same
 * ticket from the file that has its name now, or create one.  Returns whether QUEUE has another
 * file; false also if the new one cannot be used: then the ticket stays in the old one. */
bool queue_follow(struct queue *queue, const struct lock *lock);

/* With a marked ticket: is there a later one that is marked, of a process that is not stopped?
 * Then QUEUE->superseder is set. */
bool queue_superseded(struct queue *queue);

/* How long a waiter with a marked ticket pauses before it looks for later ones again, in ns. */
#define QUEUE_SUPERSEDED_PAUSE (SECOND / 2)

/* Our place among those that have a ticket, from 1; 0: not known, the search would take too
 * long. */
unsigned queue_place(struct queue *queue);

/* Does another process have a ticket at the front (--first, --replace)? */
bool queue_led_from_front(struct queue *queue);

enum turn {
	TURN_OURS,       /* no earlier ticket is left, except those of stopped processes */
	TURN_EXPIRED,    /* the deadline has passed */
	TURN_SUPERSEDED, /* queue_superseded() */
	TURN_LOOK,       /* QUEUE->look_at has passed: is the lock deserted? */
	TURN_BROKEN      /* tickets do not work here after all */
};

/* With a ticket of LOCK's queue: sleep until it is our turn, DEADLINE, or QUEUE->look_at, a second
 * after queue_join().  After TURN_LOOK, the caller sets QUEUE->look_at, by queue_pause(), and may
 * call again.  If QUEUE->look_at has passed before the call, because the caller has given the lock
 * back, say, returns TURN_LOOK at once.  The caller ends with wakeup_off(). */
enum turn queue_await(struct queue *queue, const struct lock *lock,
    const struct deadline *deadline);

/* The ns until the next look: a second for each ticket before ours, 100 at most.  So only the
 * second in line looks once a second, and a long queue costs next to nothing.  A hundred tickets
 * are not counted again while the first and the last of them are there: then nobody has had a turn.
 * If some between those have given up, the pause is too long, by less than 100 s. */
int64_t queue_pause(struct queue *queue);

/* Give the ticket up: it is the next waiter's turn.  The last process to leave removes the queue
 * file.  Copes with a queue that is not open. */
void queue_leave(struct queue *queue, const struct lock *lock);

struct ticket {
	int64_t number; /* its first byte */
	pid_t pid;      /* 0: unknown: in another PID namespace, or locked through a descriptor, not
	                 * by a process */
	bool used;      /* for the caller */
};

/* The tickets of a queue, in the order of their turns. */
struct tickets {
	struct ticket *list; /* the caller frees it */
	size_t count;
	bool failed; /* there was no memory */
};

/* Add ticket NUMBER of PID to TICKETS, unless it is there already. */
void tickets_add(struct tickets *tickets, int64_t number, pid_t pid);

/* Fill TICKETS with those of the queue file PATH, ours included, as far as LIMIT allows.  No file:
 * no tickets.  Returns 0, or -1 with errno set: the file may not be opened. */
int queue_list(struct tickets *tickets, const char path[QUEUE_PATH_SIZE], struct allowance *limit);

/* Does process PID have one of TICKETS? */
bool tickets_include(const struct tickets *tickets, pid_t pid);

#endif
