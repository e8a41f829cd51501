/* SPDX-License-Identifier: MIT */
/* cli/request.h - what the command line asks for.  Constant after request_read() (read_request.h),
 * except that hold/detach.c makes the names of locks absolute. */
#ifndef SEMLOCK_CLI_REQUEST_H
#define SEMLOCK_CLI_REQUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lock/lock.h"

struct request {
	bool as_flock;         /* invoked as flock: behave like flock(1) where the two differ */
	struct lock_spec spec; /* what all the locks have in common: the method, the slots, ... */
	bool method_asked;     /* -m or --fcntl was given: --who looks for no other method */
	/* LOCK or FD first, then those of -f; with --who, all that are named */
	struct lock_spec *locks;
	unsigned nlocks;
	const char *label; /* the user's name for the first lock */
	bool unlock;
	bool nonblocking;
	int64_t wait;   /* ns; -1: no limit */
	bool first;     /* before all waiters */
	bool supersede; /* earlier waiters that were also started with it give up */
	int queue_max;  /* wait only if fewer waiters are in the queue; -1: no limit */
	int busy_status;
	char **command; /* NULL: only lock the descriptor */
	bool close_fd, become;
	bool hold;           /* no command: hold until the end of input ... */
	pid_t owner;         /* ... or of this process (--hold=PID, or NAME); 0: of our parent */
	bool detach;         /* in the background ... */
	bool keep_place;     /* ... and wait there when WAIT is over */
	const char *resume;  /* ID of the background hold to wait for, or NULL */
	const char *release; /* ID of the background hold to end, or NULL */
	bool dies_with_parent;
	pid_t parent;    /* of --die-with-parent; 0: the process that started semlock */
	const char *log; /* a file's name; NULL */
	int on_lost;     /* a signal, or LOST_WARN; 0: not asked for */
	bool quiet, verbose;
	bool nested;
	enum preempt preempt;
	int preempt_signal;      /* for the holder */
	int64_t older;           /* ns: --replace leaves a younger holder alone */
	int64_t run_timeout;     /* ns; 0: none */
	int64_t min_hold;        /* ns; 0: none */
	int64_t kill_after;      /* ns; 0: never */
	int signal;              /* of --run-timeout; 0: TERM */
	const char *signal_text; /* as the user wrote it */
	bool who, json;          /* only look */
	bool held;               /* only ask: has this process inherited LOCK? */
};

#endif
