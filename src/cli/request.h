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
	bool as_flock;         /* invoked as flock: behave like flock(1) where semlock differs */
	struct lock_spec spec; /* what all the locks have in common: the method, the slots, ... */
	bool method_asked;     /* -m or --fcntl was given: --who looks for no other method */
	/* LOCK or FD first, then those of -f; with --who, all that are named */
	struct lock_spec *locks;
	unsigned nlocks;
	/* what messages call the first lock: LOCK as typed, or the path of --name */
	const char *label;
	bool unlock;
	bool nonblocking;
	int64_t wait;   /* ns; -1: no limit */
	bool first;     /* --first: a place before all ordinary waiters */
	bool supersede; /* --supersede: earlier waiters with this option give up */
	int queue_max;  /* wait only if fewer than this wait already; -1: no limit */
	int busy_status;
	char **command; /* NULL: none */
	bool close_fd, become;
	bool hold; /* --hold: no command; hold until standard input ends ... */
	/* ... or until this process ends (--hold=PID or NAME); 0: our parent; --detach: none */
	pid_t owner;
	bool detach;         /* --detach: hold in the background ... */
	bool keep_place;     /* ... and, when WAIT is over, go on waiting there (--keep-place) */
	const char *resume;  /* ID of the background hold to wait for, or NULL */
	const char *release; /* ID of the background hold to end, or NULL */
	bool dies_with_parent;
	/* --die-with-parent: the process whose end ends semlock; 0: the one that started semlock */
	pid_t parent;
	const char *log; /* the name of --log's file; NULL: none */
	int on_lost;     /* --on-lost: a signal's number, or LOST_WARN; 0: not given */
	bool quiet, verbose;
	bool nested;
	enum preempt preempt;
	int preempt_signal; /* what --replace or --toggle sends to the holder */
	/* --older, in ns: --replace leaves a younger holder alone; 0: not given */
	int64_t older;
	int64_t run_timeout;     /* ns; 0: none */
	int64_t min_hold;        /* ns; 0: none */
	int64_t kill_after;      /* ns from the first signal until SIGKILL; 0: no SIGKILL */
	int signal;              /* what --run-timeout sends; 0: TERM */
	const char *signal_text; /* SIGNAL as the user typed it */
	bool who, json;          /* --who: take nothing, only report */
	/* --held: take nothing, only ask whether this process has inherited LOCK */
	bool held;
};

#endif
