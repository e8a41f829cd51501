/* methods/file/heartbeat.h - a thread that gives signs of life for the command's locks made of files,
 * and monitors them while the command runs.
 *
 * Other programs can remove such a lock, or take it for stale.  A beat keeps away waiters that go by
 * age; after a loss, the sooner the command ends, the less harm it does. */
#ifndef SEMLOCK_METHODS_FILE_HEARTBEAT_H
#define SEMLOCK_METHODS_FILE_HEARTBEAT_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "lock/lock.h"
#include "report/error.h"

/* The value of --on-lost: a signal's number, this, or 0 without the option. */
enum { LOST_WARN = -1 };

struct heartbeat {
	struct lock *locks;
	unsigned count;
	int on_lost;
	int64_t every;   /* ns between two beats; INT64_MAX: none */
	pid_t command;
	int process;     /* its pidfd, or -1 */
	int stop[2];     /* a pipe: closing stop[1] ends the thread */
	struct pollfd *sources; /* COUNT locks' changes, and stop[0] */
	pthread_t thread;
	bool running;
};

/* Start the thread, if the COUNT held locks at LOCKS need it; beat every quarter of STALE ns (0: as
 * often as the method needs it).  COMMAND is the process that runs under them.  Returns 0; or -1 with
 * ERROR filled (no memory, descriptor or thread): the locks are not looked after. */
int heartbeat_start(struct heartbeat *heartbeat, struct lock *locks, unsigned count, int64_t stale,
    int on_lost, pid_t command, struct error *error);

/* Stop it: the command has ended.  A lock that was found lost has lock->lost set by now. */
void heartbeat_stop(struct heartbeat *heartbeat);

#endif
