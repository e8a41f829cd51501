/* methods/server/lease.h - while the command runs: a thread that ends it before the lease of its lock ends.
 *
 *	OK, HELD            deadline - lease/3        deadline - lease/10      deadline
 *	   |-------------------------|------------------------|------------------|
 *	                            TERM                     KILL         others may enter
 *
 * The timer is semlock's: if the helper is stopped, killed or cut off and sends no HELD, the command
 * is ended before another holder can have the lock.  Times are on CLOCK_BOOTTIME. */
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
	int process;       /* COMMAND as a pidfd, or -1 */
	int timer;         /* a timerfd on CLOCK_BOOTTIME, or -1 */
	int stop[2];       /* a pipe: its end of file ends the thread */
	int64_t term_at, kill_at; /* on CLOCK_BOOTTIME */
	int64_t pause;     /* ns between two SIGKILLs */
	bool termed;
	bool refused_said; /* the message about a process that cannot be signalled was printed */
	char loss[200];    /* the reason of the loss, until it was printed */
	bool helper_exited;
	pthread_t thread;
	bool running;
};

/* Start the thread for LOCK, a held lock on a server, which LABEL names in messages; the process
 * COMMAND runs, or will run, under it.  Returns 0, or -1 with ERROR filled: then the command must
 * not run. */
int lease_start(struct lease *lease, struct lock *lock, const char *label, pid_t command,
    struct error *error);

/* Stop the thread after the command has ended.  Sets lock->end.lost if the lock was lost before. */
void lease_stop(struct lease *lease);

#endif
