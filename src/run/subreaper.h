/* SPDX-License-Identifier: MIT */
/* run/subreaper.h - semlock as two processes.  If it were a single process and that died,
 *
 *	- with -o or -m posix, the lock would be free while processes of the command go on;
 *	- with a lock on a server, nothing would end the command before the lease ends;
 *	- with --run-timeout or --die-with-parent, the command would have no limit.
 *
 *	caller --> subreaper ---------> holder --> command --> its descendants
 *	           passes signals   everything that semlock does
 *	           and the status on
 *
 * The caller sees, and kills, the subreaper.  While the command runs, the holder is in a process
 * group, or a session, of its own: a KILL to the caller's group ends the subreaper and the command,
 * but not the holder.  If the subreaper is killed, the holder ends all its descendants, and then
 * releases the lock.  If the holder is killed, the subreaper ends the rest. */
#ifndef SEMLOCK_RUN_SUBREAPER_H
#define SEMLOCK_RUN_SUBREAPER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "report/error.h"

struct subreaper {
	pid_t holder; /* in the subreaper: the holder's PID; else 0 */
	pid_t above;  /* in the holder: the subreaper's PID; else 0 */
	/* a pair, open in both processes: what was sent to the first can be received from the
	 * second */
	int kept[2];
	pid_t group;  /* of semlock's caller */
	bool watched; /* a shell watches GROUP, as a job that it can stop */
	pid_t spared; /* a child that subreaper_end_all() leaves alone; 0: none */
	/* in the subreaper: children that started before this are spared; clock ticks after boot */
	unsigned long long since;
};

/* Fork the holder, and fill SUBREAPER in both processes; in the subreaper, all signals are blocked
 * from then on.  If the command will be process 1 of a PID namespace, it needs no subreaper, and
 * nothing is forked.  Returns 0, or -1 with ERROR filled. */
int subreaper_start(struct subreaper *subreaper, struct error *error);

/* The process that semlock's caller knows: the subreaper, or without one this process. */
pid_t subreaper_or_self(const struct subreaper *subreaper);

/* In the holder, after the command is forked and before it runs: leave the caller's process group.
 * (The command stays in the caller's session.)  From now on the holder survives the subreaper's
 * end, and a KILL to that group, so that it can end its descendants.  EXCEPT: a child to spare,
 * which belongs to semlock and not to the command; 0: none.  FD (-1: none) stays open in the
 * subreaper until subreaper_command_ended(), or, if the holder is killed, until all the rest has
 * ended.  Returns 0, or -1 with ERROR filled. */
int subreaper_command_starts(struct subreaper *subreaper, int fd, pid_t except,
    struct error *error);

/* In the holder: close the copy of FD that subreaper_command_starts() gave to the subreaper. */
void subreaper_command_ended(struct subreaper *subreaper);

/* In the holder: was the subreaper killed?  In any other process: false. */
bool subreaper_killed(const struct subreaper *subreaper);

/* In the holder, after a signal has ended the command: is the subreaper still alive, so that the
 * signal was not a KILL to the caller's whole process group?  Waits for the subreaper's answer; by
 * then, it has passed on all signals that it received before. */
bool subreaper_lives(const struct subreaper *subreaper);

/* In the subreaper: INFO was received with a signal.  If that is the question of subreaper_lives()
 * in the holder, answer it and return true. */
bool subreaper_answers(const struct subreaper *subreaper, const siginfo_t *info);

/* In the holder when the subreaper was killed, or in the subreaper when the holder was: kill all
 * descendants, and COMMAND (0: not known), and reap all of them except COMMAND. */
void subreaper_end_all(struct subreaper *subreaper, pid_t command);

/* A limit or the parent's end has ended the command: end all other descendants with SIGTERM, and
 * with SIGKILL those that are still alive GRACE ns later.  COMMAND (0: none) stays a zombie. */
void subreaper_end_rest(struct subreaper *subreaper, pid_t command, int64_t grace);

#endif
