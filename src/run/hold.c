/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "owners/owners.h"
#include "run/hold.h"
#include "run/keeper.h"
#include "lock/lock.h"
#include "report/error.h"
#include "sys/files.h"
#include "sys/process.h"
#include "sys/signals.h"

enum { OWNER_POLL = 1000 }; /* ms between two checks of an owner without a pidfd */

static bool owner_lives(const struct hold *hold)
{
	struct pollfd end = {hold->process, POLLIN, 0};

	if (hold->pid > 0 && hold->process >= 0)
		/* if poll(2) fails, the owner is not known to have ended */
		return poll(&end, 1, 0) <= 0;
	return hold->pid == 0 || (hold->pid > 0 && (kill(hold->pid, 0) == 0 || errno != ESRCH));
}

/* Sleep until standard input has EVENTS (of poll(2)), or the owner has ended.  Returns false when
 * poll(2) fails. */
static bool wait_for_event(const struct hold *hold, struct pollfd *ends, short events)
{
	int timeout = hold->process < 0 ? OWNER_POLL : -1;

	do {
		ends[0] = (struct pollfd){STDIN_FILENO, events, 0};
		ends[1] = (struct pollfd){hold->process, POLLIN, 0};
		if (poll(ends, 2, timeout) < 0 && errno != EINTR)
			return false;
	} while (ends[0].revents == 0 && owner_lives(hold));
	return true;
}

/* Standard input that cannot be hung up (closed, /dev/null, a plain file) does not end the wait. If
 * the lock is taken at this moment, SIGTERM is passed on to the placeholder. */
static void *end_wait(void *of)
{
	const struct hold *hold = of;
	struct pollfd ends[2];

	if (wait_for_event(hold, ends, POLLRDHUP) &&
	    ((ends[0].revents & POLLNVAL) == 0 || !owner_lives(hold)) &&
	    !atomic_load(&hold->taken)) {
		signal(SIGTERM, SIG_DFL); /* it may have been ignored */
		kill(getpid(), SIGTERM);
	}
	return NULL;
}

int hold_for(struct hold *hold, pid_t owner, struct error *error)
{
	hold->pid = owner == 0 ? getppid() : owner;
	hold->process = descriptor_above_standard(pidfd_of(hold->pid));
	/* the PID may have been reused before the pidfd was open */
	if (owner == 0 && getppid() != hold->pid)
		hold->pid = -1;
	if (!owner_lives(hold))
		return error_plain(error, ERROR_USAGE,
		    owner == 0 ? "--hold: the process that started it has ended"
			       : "--hold=%ld: there is no such process",
		    (long)owner);
	/* no signal says that a pipe is hung up or a process has ended */
	signals_free_thread(NULL, end_wait, hold);
	return 0;
}

void hold_waits(unsigned i)
{
	char line[64];
	int length = snprintf(line, sizeof line, KEEPER_WAITS " %u %ld\n", i, (long)getpid());

	write_without_sigpipe(STDOUT_FILENO, line, (size_t)length);
}

void hold_taken(struct hold *hold)
{
	atomic_store(&hold->taken, true);
}

/* Will there be an end of standard input that is still to come?  Not of a file or /dev/null, nor
 * where the writer has ended: the lock would be let go at once, and look as if it were held. */
static bool input_will_end(void)
{
	struct pollfd input = {STDIN_FILENO, POLLIN, 0};
	struct stat file;

	if (fstat(STDIN_FILENO, &file) != 0)
		return false;
	if (!S_ISFIFO(file.st_mode) && !S_ISSOCK(file.st_mode) && !isatty(STDIN_FILENO))
		return false;
	return poll(&input, 1, 0) <= 0 || (input.revents & (POLLHUP | POLLERR)) == 0;
}

noreturn void hold_until_end(const struct hold *hold)
{
	const char *slot = getenv("SEMLOCK_SLOT"), *token = getenv("SEMLOCK_TOKEN");
	char line[128 + SLOTS_MOST * sizeof "4095"], bytes[512];
	char name[32];
	const sigset_t term = signals_only(SIGTERM);
	struct pollfd ends[2];
	/* a keeper that is killed writes no other */
	char why = HOLD_ABANDONED;
	ssize_t got;
	pid_t shown;
	int length;

	if (hold->caller != NULL) {
		caller_leave(hold->caller, NULL, 0);
		/* --run-timeout ends it by SIGTERM, which the caller may have ignored or blocked */
		signal(SIGTERM, SIG_DFL);
		sigprocmask(SIG_UNBLOCK, &term, NULL);
	}
	if (!input_will_end()) {
		complain(
		    "--hold: standard input is at its end already, which would release the lock "
		    "at once: hand it a pipe, or use --hold=PID --detach");
		_exit(EXIT_USAGE);
	}
	length = snprintf(line, sizeof line, "OK%s%s%s%s\n",
	    slot == NULL ? "" : " slot=", slot == NULL ? "" : slot,
	    token == NULL ? "" : " token=", token == NULL ? "" : token);

	shown = hold->owner > 0 ? hold->owner : hold->pid;
	snprintf(name, sizeof name, PLACEHOLDER_NAME "%ld", (long)(shown > 0 ? shown : 0));
	prctl(PR_SET_NAME, name); /* --who and --replace know it by that */
	if (write(STDOUT_FILENO, line, (size_t)length) != length) {
		complain(
		    "cannot write to standard output, which is to say that the lock is held: %s",
		    strerror(errno));
		_exit(EXIT_SYSTEM);
	}
	do {
		if (!wait_for_event(hold, ends, POLLIN) || !owner_lives(hold))
			break;
		got = read(STDIN_FILENO, bytes, sizeof bytes);
		if (got > 0)
			why = bytes[got - 1];
	} while (got > 0 || (got < 0 && errno == EINTR));
	_exit(hold->caller == NULL ? EXIT_SUCCESS : why);
}
