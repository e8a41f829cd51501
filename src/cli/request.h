/* cli/request.h - what the command line asks for.  Constant after request_read(). */
#ifndef SEMLOCK_CLI_REQUEST_H
#define SEMLOCK_CLI_REQUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lock/lock.h"

/* One lock as the command line names it. */
struct wanted {
	const char *name; /* NULL: descriptor FD */
	int fd;
	enum lock_mode mode;
};

struct request {
	bool as_flock; /* called by the name flock: where the two differ, flock's way */
	const struct method *method;
	struct wanted *locks; /* LOCK or FD first, then those of -f */
	unsigned nlocks;
	const char *label;    /* how the user named the first */
	unsigned slots;
	struct range range;
	bool unlock;
	bool nonblocking;
	int64_t wait; /* ns; -1: for ever */
	int busy_status;
	char **command; /* NULL: only lock the descriptor */
	bool close_fd, become, remove;
	bool exact_mode;
	mode_t create_mode;
	bool init;
	bool hold; /* no command: hold until the end of input */
	pid_t owner; /* or the end of this process; 0: of the one that started us */
	int on_lost; /* a signal, or LOST_WARN; 0: not asked for */
	int64_t stale; /* ns; 0: not asked for */
	int64_t ttl;   /* ns; 0: not asked for */
	bool quiet, verbose;
	bool nested;
	enum { PREEMPT_NOT, PREEMPT_REPLACE, PREEMPT_TOGGLE } preempt;
	int preempt_signal;    /* what the holder is to be stopped with */
	int64_t run_timeout; /* ns; 0: none */
	int64_t kill_after;  /* ns; 0: never */
	int signal;          /* what --run-timeout sends */
	bool who, check, json; /* only look; LOCKS are all that were named */
	bool method_named; /* and the others do not count */
};

/* What the command line has said on the way, beside the options it set. */
struct reading {
	enum lock_mode mode; /* of the next lock to be named */
	const char *name; /* --name; NULL */
	bool limited, kills; /* --run-timeout, --kill-after */
	bool acts; /* an option that is about taking the lock, or about a command */
	bool method_named, fcntl_asked, range_asked, mode_given, fd_given, shell;
	int fd;
};

#endif
