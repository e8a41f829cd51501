/* run/relay.h - semlock as two processes, where its death would free the lock under what the command
 * has started (-o, -m posix):
 *
 *	caller --> relay ---------> holder --> command --> what that starts
 *	           passes signals   all that semlock does
 *	           and the status on
 *
 * The relay is what the caller sees, and kills.  If it is killed, the holder ends all its descendants,
 * and only then lets the lock go.  If the holder is killed, its lock goes with it, and the relay ends
 * the rest. */
#ifndef SEMLOCK_RUN_RELAY_H
#define SEMLOCK_RUN_RELAY_H

#include <stdbool.h>
#include <sys/types.h>

/* Returns in the holder.  The relay ends as the holder ends. */
void relay_start(void);

/* In the holder: the command is about to start.  Until now the holder dies with the relay; from now on it
 * does not.  EXCEPT, a child of the holder, is none of the command's; 0: there is none. */
void relay_command_starts(pid_t except);

/* In the holder: has the relay been killed? */
bool relay_killed(void);

/* End all descendants, of which COMMAND is one (0: it is not known), and reap them. */
void relay_end_all(pid_t command);

#endif
