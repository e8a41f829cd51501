/* SPDX-License-Identifier: MIT */
/* run/observer.h - what is shown while semlock waits.
 *
 * The waiter itself only waits.  A child of it, the observer, looks who holds the lock, as --who
 * does, and writes: it has neither the lock nor the queue open, and ends with the waiter, however
 * that ends.
 *
 *	waiter ----> sleeps in front of the lock
 *	   '-- observer: looks, writes; has a process group of its own, so that the keys of a
 *	       terminal reach the waiter alone, which first has the line erased, and then obeys
 *
 * On a terminal, a line says who holds the lock since when, the waiter's place in the queue, and
 * until when it waits.  It is drawn when the wait has lasted for 50 ms, and again, in place, when
 * the queue has moved or the holder has changed; it is erased at the end.  With --verbose, there
 * are ordinary messages instead, also where standard error is no terminal: then, after 10 seconds,
 * after 1 and 5 minutes, and every 10. */
#ifndef SEMLOCK_RUN_OBSERVER_H
#define SEMLOCK_RUN_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/request.h"
#include "lock/lock.h"
#include "owners/owners.h"
#include "sys/deadline.h"

/* What is to be shown of a wait. */
struct show {
	bool messages;            /* --verbose */
	bool line;                /* on a terminal */
	struct deadline deadline; /* of the wait */
	int64_t delay;            /* ns until the first look */
	pid_t asker;              /* the process that waits; 0: this one */
};

/* What is to be shown of REQUEST's wait, if it begins now. */
struct show show_of(const struct request *request);

/* Does a person see what SHOW says, on a terminal or as messages? */
bool observer_shows(const struct show *show);

/* The wait for LOCK begins, or goes on for another lock or after another word of its server: have
 * it shown, if that is wanted.  Without a process or memory for the observer, nothing is shown. */
void observer_start(const struct show *show, const struct lock *lock);

/* The wait is over: erase the line, and wait for the observer's end.  Does nothing if there is
 * none. */
void observer_end(void);

/* To be asked after observer_end(): the processes through which LOCK was held when its wait was
 * shown last; they may have let go of it since.  NULL: it was not shown. */
const struct known_members *observer_found(const struct lock *lock);

/* The same: was half a second of the wait for LOCK not enough for the first look at it?  Then the
 * machine is too busy for another one. */
bool observer_was_slow(const struct lock *lock);

#endif
