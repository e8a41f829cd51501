/* SPDX-License-Identifier: MIT */
/* run/observer.h - what is shown while semlock waits.
 *
 * The waiter itself only waits.  Its child, the observer, finds out who holds the lock, as --who
 * does, and writes.  The observer has neither the lock nor the queue open, and ends when the waiter
 * ends, even if SIGKILL ends the waiter.
 *
 *	waiter ----> sleeps in the lock call
 *	   '-- observer: looks, writes; has a process group of its own, so that Ctrl-C and Ctrl-Z
 *	       reach the waiter alone, which first erases the line, and then obeys
 *
 * The observer never delays the waiter for long, even if a file system does not answer: the waiter
 * kills it, and waits at most 50 ms for its end.  Neither process blocks when it writes to the
 * terminal, even if that is stopped (Ctrl-S).
 *
 * On a terminal, a line shows who holds the lock and since when, the waiter's place in the queue,
 * and until when it waits.  The observer draws the line after 50 ms (1 s with --replace or
 * --toggle), and redraws it in place when the queue has moved or the holder has changed; the waiter
 * erases it at the end.  With --verbose the observer prints ordinary messages instead, on a
 * terminal or not: the first as early as the line, the next after 10 seconds, 1 and 5 minutes, then
 * every 10 minutes. */
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
	bool messages;            /* messages on standard error (--verbose) */
	bool line;                /* a line on the terminal */
	struct deadline deadline; /* of the wait */
	int64_t delay;            /* ns until the first look */
	pid_t asker;              /* the process that waits; 0: this one */
};

/* What is to be shown of REQUEST's wait, if it begins now. */
struct show show_of(const struct request *request);

/* Is the wait shown, on a terminal or as messages? */
bool observer_shows(const struct show *show);

/* Show the wait for LOCK, if SHOW asks for that.  Call this when a wait begins, when it goes on for
 * another lock, and when the server has said something new.  If no observer can be started, nothing
 * is shown. */
void observer_start(const struct show *show, const struct lock *lock);

/* The wait is over: end the observer, and erase the line if the terminal takes the bytes.  Takes at
 * most 70 ms.  Does nothing without an observer. */
void observer_end(void);

/* After observer_end(): the processes that held LOCK when its wait was last shown; they may have
 * released it since.  NULL: it was not shown. */
const struct known_members *observer_found(const struct lock *lock);

/* After observer_end(): was the first look at LOCK unfinished half a second after it was due?  Then
 * the machine is too busy for another look. */
bool observer_was_slow(const struct lock *lock);

#endif
