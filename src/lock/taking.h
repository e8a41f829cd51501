/* SPDX-License-Identifier: MIT */
/* lock/taking.h - taking one lock, or several (-f): the policy over any method.
 *
 *              BUSY, time left: queue, sleep
 *               .--------------.
 *               v              |
 *   FREE --> open --> take ----+--> TAKEN --> still what the name means? --> held
 *              ^        |                                |
 *              |        '--> BUSY (-n, time out), FAILED | no: the file was removed
 *              |                                         | or replaced
 *              '-----------------------------------------'
 *
 * taking_step() goes on until the taking has ended, or needs something that is not for this folder
 * to do: the caller does it, and calls again.  Nothing here calls the caller. */
#ifndef SEMLOCK_LOCK_TAKING_H
#define SEMLOCK_LOCK_TAKING_H

#include "lock/lock.h"
#include "lock/queue.h"

/* Why taking_step() returns. */
enum step {
	/* The taking is over. */
	STEP_TAKEN,  /* all locks are held */
	STEP_BUSY,   /* no lock is held; TAKING->lock->busy says why */
	STEP_FAILED, /* no lock is held; ERROR says why, and TAKING->lock is the one that failed */

	/* TAKING->lock is busy, and the wait for it begins: answer in TAKING->when_busy. */
	STEP_WAITS,
	/* Only with --replace or --toggle: TAKING->lock is busy.  With --replace, this comes only
	 * when we are first in line, or when those before us make no progress.  End the holder, and
	 * answer in TAKING->nap. */
	STEP_HELD,
	/* The record of TAKING->lock must name the command's process: start it, up to its start
	 * barrier, and answer in TAKING->lock->child->pid. */
	STEP_NEEDS_CHILD
};

/* Where a taking continues. */
enum phase {
	PHASE_OPEN,        /* open all locks */
	PHASE_ASK_SERVER,  /* a lock on a server: the helper does the rest */
	PHASE_FIRST_TRY,   /* the next lock: is there a queue?  If not, try */
	PHASE_TRY_PAST,    /* there is a queue, and the caller does not wait: try past it */
	PHASE_JOIN,        /* draw a ticket */
	PHASE_TRY_IN_TURN, /* try with our ticket, unless there is an earlier one */
	PHASE_CONVERT,     /* the wait has begun: do we hold a part of the lock already? */
	PHASE_LINE,        /* sleep while there is an earlier ticket */
	/* there is no earlier ticket, or we skip the queue: sleep in front of the lock itself */
	PHASE_HEAD,
	PHASE_END,   /* the attempt at one lock is over: leave its queue */
	PHASE_ANSWER /* return TAKING->step; continue with TAKING->resume */
};

struct taking {
	struct lock *locks;
	unsigned count;
	const struct wait_options *wait;

	struct lock *lock; /* the lock that the step is about */

	/* The caller's answers. */
	enum when_busy when_busy;
	int64_t nap; /* ns to sleep in the kernel's queue for LOCK before the next STEP_HELD */

	enum phase phase;
	enum phase resume;
	enum step step;
	enum outcome outcome; /* of the attempt at LOCK, for PHASE_END */
	unsigned moves;       /* how often LOCK's name has come to mean another file */

	struct lock *single;
	struct lock **order; /* the locks, in the order in which they are taken */
	unsigned at;         /* LOCK's index in ORDER */

	struct queue queue; /* the queue of LOCK */
	bool joined;        /* we have a ticket ... */
	/* ... but skip the queue: the ticket only keeps later waiters behind us */
	bool skips;
	int looks; /* in PHASE_LINE: how many looks found LOCK not deserted */
	/* how many looks in a row, up to the last one, found a process asleep in front of LOCK */
	unsigned sleepers;
};

/* Prepare to take the COUNT locks at LOCKS within WAIT: all or none.  TAKING, LOCKS and WAIT must
 * stay where they are. */
void taking_begin(struct taking *taking, struct lock *locks, unsigned count,
    const struct wait_options *wait);

/* Go on until the next step.  ERROR is filled on STEP_FAILED.  ERROR->kind is ERROR_NONE at first:
 * on STEP_BUSY it may be filled, too: then it says why waiting longer would not have helped. */
enum step taking_step(struct taking *taking, struct error *error);

/* After STEP_WAITS: our place in the queue, from 1; 0: unknown. */
unsigned taking_place(struct taking *taking);

/* Give up after a step that did not end the taking: leave the queue, release the locks. */
void taking_give_up(struct taking *taking);

#endif
