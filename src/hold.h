/* hold.h - --hold: the command that does nothing but hold, for as long as somebody wants it. */
#ifndef SEMLOCK_HOLD_H
#define SEMLOCK_HOLD_H

#include <stdbool.h>
#include <stdnoreturn.h>
#include <sys/types.h>

/* Call before the lock is asked for.  From here to hold_taken(), semlock gives up as by SIGTERM
 * when standard input is hung up, or the process OWNER (0: none) has ended: nobody is left to
 * hold the lock for.  Returns false when there is no process OWNER. */
bool hold_for(pid_t owner);

/* The lock is ours: what ends the holding from now on is hold_until_end(). */
void hold_taken(void);

/* In the process that stands for the command: say OK on standard output, and end when standard
 * input or the owner does.  Whoever cannot hear the OK has no lock. */
noreturn void hold_until_end(void);

#endif
