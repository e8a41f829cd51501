/* SPDX-License-Identifier: MIT */
/* run/run.h - one run of semlock, in the order of main.c: it begins, its locks are taken, its
 * command runs, the locks are released, and it ends. */
#ifndef SEMLOCK_RUN_RUN_H
#define SEMLOCK_RUN_RUN_H

#include "cli/request.h"
#include "lock/lock.h"
#include "hold/detach.h"
#include "hold/hold.h"
#include "run/hold_time.h"
#include "run/log.h"
#include "run/outcome.h"
#include "run/start.h"
#include "run/subreaper.h"

/* What the command runs under. */
enum run_locks {
	LOCKS_NONE,     /* nothing was taken, and the outcome says why */
	LOCKS_TAKEN,    /* LOCKS, which run_release() must release */
	LOCKS_INHERITED /* an inherited lock (--nested); LOCKS are not taken */
};

struct run {
	const struct request *request;
	struct subreaper subreaper;
	struct run_log log;
	struct hold hold;
	struct detachment detachment;
	struct lock *locks; /* as many as REQUEST names */
	enum run_locks holds;
	struct child child; /* what a lock's record has to know of COMMAND */
	struct command command;
	struct hold_time time;
	struct run_outcome outcome;
};

/* Fill RUN for REQUEST; both must stay where they are.  Opens the log, and watches the parent
 * (--die-with-parent) or the owner (--hold).  If REQUEST needs a subreaper, forks the holder, and
 * returns in both processes: RUN->subreaper.holder tells them apart.  With --detach, likewise:
 * RUN->detachment.is_front.  Returns 0, or -1 with RUN->outcome filled. */
int run_begin(struct run *run, const struct request *request);

/* As the subreaper: wait for the holder to end, passing signals to it.  Returns its exit status, or
 * dies as it did. */
int run_watch(struct run *run);

/* Set the command's environment, and fork its process, which then waits at its start barrier.  For
 * a lock that must know that process before the command runs (STEP_NEEDS_CHILD).  Returns 0, also
 * if the process was forked before, or -1 with ERROR filled. */
int run_start_child(struct run *run, struct error *error);

/* RUN->locks are taken or inherited: run the command, execute it in this process (-F), or hold the
 * locks without one (--hold).  Fills RUN->outcome. */
void run_command(struct run *run);

/* Release RUN's locks, or leave that to our exit; then report how the command ended. */
void run_release(struct run *run);

/* -u: unlock the caller's descriptor, or open the file (-u FILE COMMAND, as flock); run the command
 * if there is one. */
void run_unlocked(struct run *run);

/* The end: reap the command, and write the log.  Returns the exit status, or dies of the signal
 * that ended the command. */
int run_end(struct run *run);

/* --held: has this process inherited the lock that REQUEST names, in a mode that covers the one
 * asked for?  Returns 0 if so, else EXIT_BUSY.  Nothing is taken. */
int run_is_under(const struct request *request);

#endif
