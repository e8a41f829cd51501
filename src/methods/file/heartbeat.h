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
	/* the caller sets these */
	struct lock *locks; /* COUNT of them, which are held */
	unsigned count;
	int64_t stale;   /* ns: beat every quarter of it; 0: as often as the methods need it */
	int on_lost;     /* LOST_WARN, or a signal's number; 0: neither */
	pid_t command;   /* the process that runs under the locks */
	void (*report)(const struct lock *lock); /* tell the user, from the thread, that LOCK is lost */

	int64_t every;   /* ns between two beats; INT64_MAX: none */
	int process;     /* COMMAND's pidfd, or -1 */
	int stop[2];     /* a pipe: closing stop[1] ends the thread */
	struct pollfd *sources; /* COUNT locks' changes, and stop[0] */
	pthread_t thread;
	bool running;
};

/* Start the thread, if the locks need it.  Returns 0; or -1 with ERROR filled (no memory, descriptor or
 * thread): the locks are not looked after. */
int heartbeat_start(struct heartbeat *heartbeat, struct error *error);

/* Stop it: the command has ended.  A lock that was found lost has lock->end.lost set by now. */
void heartbeat_stop(struct heartbeat *heartbeat);

#endif
