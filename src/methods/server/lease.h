/* methods/server/lease.h - while the command runs: the timer on the lease of a lock on a server.
 *
 *	OK, HELD            deadline - lease/3        deadline - lease/10      deadline
 *	   |-------------------------|------------------------|------------------|
 *	                            TERM                     KILL         others may enter
 *
 * The timer is ours: whatever keeps the helper from saying HELD - it is stopped, killed, cut
 * off - the command is gone before anybody else can have the lock. */
#ifndef SEMLOCK_METHODS_SERVER_LEASE_H
#define SEMLOCK_METHODS_SERVER_LEASE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "lock/lock.h"
#include "sys/pipe_holders.h"

struct lease {
	struct lock *lock;
	const char *label; /* how the user named the lock */
	pid_t command;
	struct pipe_holders pipe_holders; /* the command's descendants, and what has the pipe */
	int process;       /* the same as a pidfd, or -1 */
	int timer;         /* a timerfd on CLOCK_BOOTTIME, or -1 */
	int stop[2];       /* a pipe */
	int64_t term_at, kill_at; /* on CLOCK_BOOTTIME */
	int64_t pause;     /* ns between two SIGKILLs */
	bool termed;
	bool refused_said; /* that a process could not be signalled */
	char loss[200];    /* why it is lost, until it has been said */
	bool helper_exited;         /* the helper has ended */
	pthread_t thread;
	bool running;
};

/* Begin for LOCK, which is held, on a server; COMMAND runs, or will run, under it.  Returns 0,
 * or -1 with ERROR filled: then the command must not run. */
int lease_start(struct lease *lease, struct lock *lock, const char *label, pid_t command,
    struct error *error);

/* The command has ended.  If the lock was lost before, lock->lost is set by now. */
void lease_stop(struct lease *lease);

#endif
