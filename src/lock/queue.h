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
 * A ticket is a lock of the process (F_SETLK), not of a descriptor: so the kernel tells which
 * process has it, and no child inherits it.  But the kernel drops the ticket when the process
 * closes any descriptor of the queue's file: so a process that has drawn a ticket opens that file
 * once, and closes it once.
 *
 * The queue file is shared memory named after the lock's device and inode.  The first waiter
 * creates it, and the last one to leave removes it.  The queue decides the order of the waiters,
 * but neither exclusion nor progress: at least every 100 s, whatever the tickets do, a waiter
 * checks whether the lock itself is deserted (attempt.h).  A fault of the queue costs order, and
 * nothing else.
 *
 * A ticket that supersedes others (--supersede) is marked: it is two bytes long.  A waiter with a
 * marked ticket gives up when it finds a later one that is marked.  So nobody is signalled, no mark
 * outlives its process, and the last of the marked waiters never gives up.
 *
 * If /proc shows that a waiter is stopped, the others pass it: its ticket does not count until it
 * goes on.  A waiter may also fail to come for another reason: its control group is frozen, it
 * cannot be seen from here, or it is not a semlock.  The others pass it only when they find the
 * lock deserted. */
#ifndef SEMLOCK_LOCK_QUEUE_H
#define SEMLOCK_LOCK_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lock/lock.h"
#include "lock/queue_trust.h"
#include "sys/deadline.h"

/* Ordinary tickets begin at this offset.  The tickets of --first and --replace, which come before
 * them, begin at 0. */
#define QUEUE_ORDINARY (INT64_C(1) << 61)
/* Not a ticket: with --queue-max, a process locks this byte while it draws a ticket and counts the
 * others. */
#define QUEUE_ADMISSION INT64_MAX

struct queue {
	int fd;         /* of its file; -1: not open */
	bool unusable;  /* no tickets: fall back to the kernel's order */
	int64_t ticket; /* the offset of our ticket; 0: none drawn yet */
	int64_t last;   /* a hint: the ticket drawn before ours; 0: none, search */
	/* when to look whether the waiters before us are stopped, and whether the lock is deserted:
	 * ns, on clock_now()'s clock */
	int64_t look_at;
	int64_t seen; /* the ticket to sleep on after that look; -1: none, search */
	/* set by queue_pause().  HEAD: the first ticket.  FAR: the hundredth, at which the count
	 * stops; -1: there were fewer */
	int64_t head, far;
	bool supersedes;  /* our ticket is marked */
	pid_t superseder; /* set by queue_superseded(): the process; 0: it cannot be seen */
	unsigned places;  /* draw no ticket if this many others have one; 0: no limit */
	bool full;        /* PLACES others have a ticket, and we have none */
	bool cleared;     /* a file that had its name and was not trusted has been removed */
	bool hostile;     /* a search took too long: no ticket counts any more */
	struct effort search;
	struct openness open;
};

/* Open LOCK's queue file, without drawing a ticket or checking the file.  If the file does not
 * exist, no process waits, and QUEUE->fd stays -1.  If it cannot be opened, QUEUE->unusable is
 * set. */
void queue_open(struct queue *queue, const struct lock *lock);

/* Draw a ticket from LOCK's queue.  Open the queue's file if it is not open, and create it if it
 * does not exist.  FRONT: draw a ticket before all ordinary ones, whatever QUEUE->places says.
 * Returns false when DEADLINE passes, when QUEUE->full, or when the queue is unusable or
 * untrusted. */
bool queue_join(struct queue *queue, const struct lock *lock, bool front,
    const struct deadline *deadline);

/* Does a process that is not stopped wait in the open queue?  A queue that may not be used is
 * closed, and removed where that is permitted. */
bool queue_has_waiter(struct queue *queue, const struct lock *lock);

/* Is there an earlier ticket of a process that is not stopped? */
bool queue_preceded(struct queue *queue);

/* With a ticket of LOCK's queue: if another process has removed the queue's file, draw the same
 * ticket from the file that has its name now, or create one.  Returns true if QUEUE now uses
 * another file.  Returns false also if that file cannot be used: then the ticket stays in the old
 * one. */
bool queue_follow(struct queue *queue, const struct lock *lock);

/* With a marked ticket: does another process, which is not stopped, have a later one that is
 * marked?  If so, sets QUEUE->superseder. */
bool queue_superseded(struct queue *queue);

/* How long a waiter with a marked ticket pauses before it looks for later ones again, in ns. */
#define QUEUE_SUPERSEDED_PAUSE (SECOND / 2)

/* Our place among the waiters with a ticket, from 1; 0: not known, because the search takes too
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

/* With a ticket of LOCK's queue: sleep until our turn comes, until DEADLINE, or until
 * QUEUE->look_at, which queue_join() sets to one second later.  After TURN_LOOK, the caller sets
 * QUEUE->look_at, by queue_pause(), and may call this again.  If QUEUE->look_at has already passed,
 * for instance because the caller has taken the lock and given it back, this returns TURN_LOOK at
 * once.  At the end, the caller must call wakeup_off(). */
enum turn queue_await(struct queue *queue, const struct lock *lock,
    const struct deadline *deadline);

/* The ns until the next look: a second for each ticket before ours, 100 at most.  So only the
 * second in line looks once a second, and a long queue costs next to nothing.  If there are a
 * hundred tickets before ours, they are not counted again while the first and the last of them are
 * there: nobody has had a turn since.  If some between them have given up, the pause is too long,
 * by less than 100 s. */
int64_t queue_pause(struct queue *queue);

/* Give our ticket up: then it is the next waiter's turn.  The last process to leave removes the
 * queue file.  Does nothing if the queue is not open. */
void queue_leave(struct queue *queue, const struct lock *lock);

struct ticket {
	int64_t number; /* its first byte */
	pid_t pid;      /* 0: unknown: in another PID namespace, or locked through a descriptor, not
	                 * by a process */
	bool used;      /* for the caller's own use */
};

/* The tickets of a queue, in the order of their turns. */
struct tickets {
	struct ticket *list; /* the caller frees it */
	size_t count;
	bool failed; /* there was no memory */
};

/* Add ticket NUMBER of PID to TICKETS, unless it is there already. */
void tickets_add(struct tickets *tickets, int64_t number, pid_t pid);

/* Fill TICKETS with those of the queue file PATH, ours included, 4,096 at most, as far as LIMIT
 * allows.  No file: no tickets.  Returns 0, or -1 with errno set: the file may not be opened. */
int queue_list(struct tickets *tickets, const char path[QUEUE_PATH_SIZE], struct allowance *limit);

/* Does process PID have one of TICKETS? */
bool tickets_include(const struct tickets *tickets, pid_t pid);

#endif
