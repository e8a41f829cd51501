/* SPDX-License-Identifier: MIT */
/* run/relay.h - semlock as two processes, where its death would free the lock under processes that the
 * command has started (-o, -m posix), or leave a lease without its timer (a lock on a server):
 *
 *	caller --> relay ---------> holder --> command --> its descendants
 *	           passes signals   everything that semlock does
 *	           and the status on
 *
 * The caller sees, and kills, the relay.  If the relay is killed, the holder ends all its descendants, and
 * then releases the lock.  If the holder is killed, its lock goes with it, and the relay ends the rest. */
#ifndef SEMLOCK_RUN_RELAY_H
#define SEMLOCK_RUN_RELAY_H

#include <stdbool.h>
#include <sys/types.h>

#include "report/error.h"

/* Fork the holder.  Returns 0 in the holder; its PID in the relay, where all signals are blocked then;
 * -1 with ERROR filled.  As process 1 of a PID namespace, the command needs no relay: 0 without a fork. */
pid_t relay_start(struct error *error);

/* The process that semlock's caller knows: the relay, or without one this process. */
pid_t relay_or_self(void);

/* In the holder, before the command starts: from now on, it survives the relay's death, to end its
 * descendants.  EXCEPT: a child that is not the command's, and is spared; 0: none.  FD, unless -1, stays open in the
 * relay: if the holder is killed, until the rest has ended.  Returns 0, or -1 with ERROR filled. */
int relay_command_starts(int fd, pid_t except, struct error *error);

/* In the holder: the relay no longer has that descriptor open. */
void relay_command_ended(void);

/* In the holder: has the relay been killed?  false in any other process. */
bool relay_killed(void);

/* In the holder, once the relay has been killed, or in the relay, once the holder has: kill all descendants, COMMAND among
 * them (0: not known), and reap them, but for COMMAND. */
void relay_end_all(pid_t command);

#endif
