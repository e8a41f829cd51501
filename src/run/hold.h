/* run/hold.h - --hold: nothing is run; the lock is held for whoever has started us. */
#ifndef SEMLOCK_RUN_HOLD_H
#define SEMLOCK_RUN_HOLD_H

#include <stdbool.h>
#include <sys/types.h>

/* Call before the lock is asked for.  From here to hold_taken(), semlock gives up as by SIGTERM
 * when standard input is hung up, or the process OWNER (0: the one that started us) has ended:
 * nobody is left to hold the lock for.  Returns false when there is no process OWNER. */
bool hold_for(pid_t owner);

/* The lock is ours: what ends the holding from now on is hold_until_end(). */
void hold_taken(void);

/* In the process that stands for the command, with its environment: say OK on standard output,
 * "OK slot=N token=N" where the lock has such, and end when standard
 * input or the owner does.  Whoever cannot hear the OK has no lock.  Does not return. */
void hold_until_end(void);

#endif
