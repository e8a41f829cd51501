/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/files.h"
#include "run/run.h"
#include "lock/lock.h"
#include "sys/process.h"
#include "sys/signals.h"
#include "report/error.h"

enum { OWNER_POLL = 1000 }; /* ms between two checks of an owner without a pidfd */

/* A child of the owner may keep the other end of standard input open long after the owner's end:
 * the end of input is not enough. */
static struct {
	pid_t pid;   /* 0: outside this PID namespace: its end cannot be seen; -1: it has ended */
	int process; /* a pidfd, readable at its end; -1: none */
} owner = {.process = -1};
static atomic_bool taken;

static bool owner_lives(void)
{
	struct pollfd end = {owner.process, POLLIN, 0};

	if (owner.pid > 0 && owner.process >= 0)
		/* if poll(2) fails, the owner is not known to have ended */
		return poll(&end, 1, 0) <= 0;
	return owner.pid == 0 || (owner.pid > 0 && (kill(owner.pid, 0) == 0 || errno != ESRCH));
}

/* Sleep until standard input has EVENTS (of poll(2)), or the owner has ended.  Returns false when
 * poll(2) fails. */
static bool wait_for_event(struct pollfd *ends, short events)
{
	int timeout = owner.process < 0 ? OWNER_POLL : -1;

	do {
		ends[0] = (struct pollfd){STDIN_FILENO, events, 0};
		ends[1] = (struct pollfd){owner.process, POLLIN, 0};
		if (poll(ends, 2, timeout) < 0 && errno != EINTR)
			return false;
	} while (ends[0].revents == 0 && owner_lives());
	return true;
}

/* Standard input that cannot be hung up (closed, /dev/null, a plain file) does not end the wait. If
 * the lock is taken at this moment, SIGTERM is passed on to the placeholder. */
static void *end_wait(void *unused)
{
	struct pollfd ends[2];

	(void)unused;
	if (wait_for_event(ends, POLLRDHUP) &&
	    ((ends[0].revents & POLLNVAL) == 0 || !owner_lives()) && !atomic_load(&taken)) {
		signal(SIGTERM, SIG_DFL); /* it may have been ignored */
		kill(getpid(), SIGTERM);
	}
	return NULL;
}

bool hold_for(pid_t pid)
{
	owner.pid = pid == 0 ? getppid() : pid;
	owner.process = descriptor_above_standard(pidfd_of(owner.pid));
	/* the PID may have been reused before the pidfd was open */
	if (pid == 0 && getppid() != owner.pid)
		owner.pid = -1;
	if (!owner_lives()) {
		complain(pid == 0 ? "--hold: the process that started it has ended"
				  : "--hold=%ld: there is no such process",
		    (long)pid);
		return false;
	}
	/* no signal says that a pipe is hung up or a process has ended */
	signals_free_thread(NULL, end_wait, NULL);
	return true;
}

void hold_taken(void)
{
	atomic_store(&taken, true);
}

void hold_until_end(void)
{
	const char *slot = getenv("SEMLOCK_SLOT"), *token = getenv("SEMLOCK_TOKEN");
	char line[128 + SLOTS_MOST * sizeof "4095"], bytes[512];
	struct pollfd ends[2];
	ssize_t got;
	int length = snprintf(line, sizeof line, "OK%s%s%s%s\n",
	    slot == NULL ? "" : " slot=", slot == NULL ? "" : slot,
	    token == NULL ? "" : " token=", token == NULL ? "" : token);

	if (write(STDOUT_FILENO, line, (size_t)length) != length) {
		complain(
		    "cannot write to standard output, which is to say that the lock is held: %s",
		    strerror(errno));
		_exit(EXIT_SYSTEM);
	}
	do {
		if (!wait_for_event(ends, POLLIN) || !owner_lives())
			break;
		got = read(STDIN_FILENO, bytes, sizeof bytes);
	} while (got > 0 || (got < 0 && errno == EINTR));
	_exit(EXIT_SUCCESS);
}
