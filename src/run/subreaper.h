/* SPDX-License-Identifier: MIT */
/* run/subreaper.h - semlock as two processes, where a killed semlock would free the lock under
 * processes that the command has started (-o, -m posix), leave a lease without its timer (a lock on
 * a server), or the command without its limit (--run-timeout, --die-with-parent):
 *
 *	caller --> subreaper ---------> holder --> command --> its descendants
 *	           passes signals   everything that semlock does
 *	           and the status on
 *
 * The caller sees, and kills, the subreaper.  While the command runs, the holder is in a process
 * group, or a session, of its own: a KILL to the caller's group ends the subreaper and the command.
 *If the subreaper is killed, the holder ends all its descendants, and then releases the lock.  If
 *the holder is killed, the subreaper ends the rest. */
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
	/* sockets, open in both: what was sent to the first can be received from the second */
	int kept[2];
	pid_t group;  /* the caller's process group */
	bool watched; /* a shell watches it: it is a job that can be stopped */
	pid_t spared; /* a child that subreaper_end_all() leaves alone; 0: none */
	/* in the subreaper: a child that started earlier is spared; clock ticks after boot */
	unsigned long long since;
};

/* Fork the holder, and fill SUBREAPER in both; in the subreaper all signals are blocked then.  As
 * process 1 of a PID namespace, the command needs no subreaper: then there is no fork.  Returns 0,
 * or -1 with ERROR filled. */
int subreaper_start(struct subreaper *subreaper, struct error *error);

/* The process that semlock's caller knows: the subreaper, or without one this process. */
pid_t subreaper_or_self(const struct subreaper *subreaper);

/* In the holder, once the command's process is forked (that one stays in the caller's session) and
 * before it runs: from now on, the holder survives the subreaper's death, and a KILL to the
 * caller's process group, which it leaves, to end its descendants.  EXCEPT: a child that is not the
 * command's, and is spared; 0: none.  FD, unless -1, stays open in the subreaper: if the holder is
 * killed, until the rest has ended.  Returns 0, or -1 with ERROR filled. */
int subreaper_command_starts(struct subreaper *subreaper, int fd, pid_t except,
    struct error *error);

/* In the holder: the subreaper no longer has that descriptor open. */
void subreaper_command_ended(struct subreaper *subreaper);

/* In the holder: has the subreaper been killed?  false in any other process. */
bool subreaper_killed(const struct subreaper *subreaper);

/* In the holder, whose command a signal has ended: does the subreaper live, and was not killed with
 * it, by one signal to the caller's process group?  Waits for an answer; what the subreaper has
 * received before, it has passed on by then. */
bool subreaper_lives(const struct subreaper *subreaper);

/* In the subreaper: INFO is of a signal that was received.  If the holder asks, answer, and return
 * true. */
bool subreaper_answers(const struct subreaper *subreaper, const siginfo_t *info);

/* In the holder, once the subreaper has been killed, or in the subreaper, once the holder has: kill
 * all descendants, COMMAND among them (0: not known), and reap them, but for COMMAND. */
void subreaper_end_all(struct subreaper *subreaper, pid_t command);

/* The command has ended, by its limit or with the parent: end all other descendants, by SIGTERM,
 * and by SIGKILL those that live GRACE ns later. */
void subreaper_end_rest(struct subreaper *subreaper, pid_t command, int64_t grace);

#endif
