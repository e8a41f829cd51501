/* tie.h - how another process knows when a descriptor of its caller's is open no more.
 *
 *	the caller's description   byte N locked            gone with its last copy, or by -u
 *	a description of ours      byte N+1 locked          gone when the lock is free
 *	                           byte N waited for
 *
 * An OFD lock belongs to the open file description, which the caller and all who inherit it
 * share: the kernel gives it up exactly when the last of them has closed it or has ended,
 * however.  N is drawn at random from so many that nobody else has it: it names the tie, too,
 * in /proc/PID/fdinfo of all who hold it. */
#ifndef SEMLOCK_TIE_H
#define SEMLOCK_TIE_H

#include <stdbool.h>
#include <sys/types.h>

#include "report.h"

struct tie {
	enum {
		TIE_NONE,  /* it cannot be done with this descriptor: watch the caller instead */
		TIE_LOOKS, /* open for reading only: the byte can be looked at, not waited for */
		TIE_SLEEPS
	} kind;
	int fd; /* our own description; -1: none */
	off_t byte;
};

/* Tie to the caller's descriptor FD.  Returns 0, with tie->kind telling how well it could be done,
 * or -1 with WHY filled: there is no such descriptor. */
int tie_make(struct tie *tie, int fd, struct why *why);

/* Nothing came of it: FD is as it was. */
void tie_undo(struct tie *tie, int fd);

/* Has anybody the descriptor open still, and not let it go?  For TIE_NONE: no. */
bool tie_is_held(const struct tie *tie);

/* Sleep until it is let go.  CALLER is a pidfd: its end is waited for where the tie is none, and
 * hastens the look where it can only be looked at. */
void tie_await(const struct tie *tie, int caller);

/* To all who have the descriptor open, but the caller's process EXCEPT: signal SIGNO. */
void tie_signal(const struct tie *tie, int signo, pid_t except);

/* The lock is lost: from now on tie_release() says so. */
void tie_lose(const struct tie *tie);

/* Let go all that is tied to FD, and wait until it is free.  Returns how many ties there were, or -1
 * with WHY filled (TROUBLE_LOST): the lock of one was not held any more. */
int tie_release(int fd, struct why *why);

/* Is a byte of a tie of FD's among the LENGTH bytes (0: all there may be) from START on? */
bool tie_among(int fd, off_t start, off_t length);

#endif
