/* methods/file/heartbeat.h - while the command runs: signs of life for its locks, and an eye on them.
 *
 * A lock made of files can be taken away by somebody who does not heed it, or takes it for
 * old.  A beat keeps away those who go by age; and if it has happened, the sooner the
 * command ends, the less it can spoil. */
#ifndef SEMLOCK_METHODS_FILE_HEARTBEAT_H
#define SEMLOCK_METHODS_FILE_HEARTBEAT_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "lock/lock.h"
#include "report/error.h"

/* What a lost lock means for the command: a signal's number, this, or 0 without --on-lost. */
enum { LOST_WARN = -1 };

struct heartbeat {
	struct lock *locks;
	unsigned count;
	int on_lost;
	int64_t every;   /* ns between two beats; INT64_MAX: none */
	pid_t command;
	int process;     /* the same as a pidfd, or -1 */
	int stop[2];     /* a pipe */
	struct pollfd *sources; /* a change of each lock, and STOP */
	pthread_t thread;
	bool running;
};

/* Begin, if there is anything to be done for the COUNT locks at LOCKS, which are held; beat
 * at a quarter of STALE ns (0: as the method needs it).  COMMAND is the process that runs
 * under them.  Returns 0; or -1 with ERROR filled (no memory, descriptor or thread): nobody will
 * look after them. */
int heartbeat_start(struct heartbeat *heartbeat, struct lock *locks, unsigned count, int64_t stale,
    int on_lost, pid_t command, struct error *error);

/* The command has ended.  A lock that was found lost has lock->lost set by now. */
void heartbeat_stop(struct heartbeat *heartbeat);

#endif
