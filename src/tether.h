/* tether.h - --tether=FD: take a lock for the calling shell, tied to its open descriptor.
 *
 *	the shell            semlock                 the holder, in the background
 *	 exec 8>file
 *	 semlock ... ------>  ties, forks ---------->  waits for the lock, as ever
 *	                      |                        starts the watcher, where a command would be
 *	 goes on  <---------  ends, 0  <-------------  the watcher runs: it is held
 *	 exec 8>&-, or it ends, or semlock -u 8  --->  the watcher ends, and the lock is let go
 *
 * The watcher has what a command would inherit of the lock, and keeps it if the holder is
 * killed.  Told to end by SIGTERM (the lock is lost), it tells the caller. */
#ifndef SEMLOCK_TETHER_H
#define SEMLOCK_TETHER_H

#include <stdbool.h>

#include "caller.h"
#include "lock.h"
#include "report.h"
#include "tie.h"

struct tether {
	int fd; /* the caller's */
	int on_lost; /* the signal that the caller gets then; LOST_WARN: none; LOST_UNSAID: it, and all
			who have the descriptor open, are stopped */
	const struct lock *locks;
	unsigned nlocks;
	struct caller caller;
	struct tie tie;
	pid_t holder;
	int report[2]; /* a pipe: the word that the lock is held */
};

/* Tie TETHER to its FD and fork.  Returns 0 in the holder, which has nothing of the caller's open any
 * more but standard input, output and error; in the caller's child it stays until the lock is held
 * or not to be had, and exits.  -1 with WHY filled: nothing was done. */
int tether_begin(struct tether *tether, struct why *why);

/* In the holder, when it has the lock: be in nobody's way from now on. */
void tether_detach(const struct tether *tether);

/* The watcher, in the command's stead; CONTEXT is the struct tether.  Does not return. */
void tether_watch(void *context);

/* In the holder, when the watcher was killed by a signal: if the caller is at work still, it is
 * told that it has no lock. */
void tether_orphaned(const struct tether *tether);

/* Of the locks, the one that is the very file that is tied to, and locked by the kernel so that the
 * tie is in its way; NULL: none. */
const struct lock *tether_in_its_own_way(const struct tether *tether);

#endif
