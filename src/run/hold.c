/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
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
#include "run/keeper_state.h"
#include "lock/lock.h"
#include "report/error.h"
#include "sys/deadline.h"
#include "sys/files.h"
#include "sys/process.h"
#include "sys/signals.h"

#define NO_INPUT \
	"--hold: standard input is at its end already, which would release the lock at once: " \
	"hand it a pipe, or use --hold=PID --detach"

#define NO_EVENT "cannot wait for the end of standard input"

/* Which of two reads the caller's lines: the thread of the wait until the lock is taken, then the
 * placeholder. */
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;

/* How long poll(2) may sleep, in ms; -1: without an end. */
static int longest_sleep(const struct hold *hold)
{
	const int line = deadline_poll_time(&hold->lines.due);
	const int look = hold_owner_poll_time(&hold->owner);

	if (line < 0 || look < 0)
		return line < 0 ? look : line;
	return line < look ? line : look;
}

/* Sleep until standard input has EVENTS (of poll(2)), the owner has ended, or a line is overdue.
 * Returns false when poll(2) fails. */
static bool wait_for_event(const struct hold *hold, struct pollfd *ends, short events)
{
	do {
		ends[0] = (struct pollfd){STDIN_FILENO, events, 0};
		ends[1] = (struct pollfd){hold->owner.end, POLLIN, 0};
		if (poll(ends, 2, longest_sleep(hold)) < 0 && errno != EINTR)
			return false;
	} while (ends[0].revents == 0 && !hold_owner_ended(&hold->owner) &&
		 deadline_left(&hold->lines.due) > 0);
	return true;
}

/* A call that waits for the end, or is to make it, has failed: end with STATUS, and not in
 * silence. */
static noreturn void end_by_error(const char *what, int status)
{
	complain("--hold: %s: %s", what, strerror(errno));
	_exit(status);
}

static void end_as_by_term(void)
{
	signal(SIGTERM, SIG_DFL); /* it may have been ignored */
	if (kill(getpid(), SIGTERM) != 0)
		end_by_error("cannot end the wait", EXIT_SYSTEM);
}

/* The end of the input or of the owner ends the wait (H3); in the background these are the
 * keeper's. Standard input that cannot be hung up (closed, /dev/null, a plain file) does not end
 * the wait. If the lock is taken at this moment, SIGTERM is passed on to the placeholder. */
static void *end_wait(void *of)
{
	const struct hold *hold = of;
	struct pollfd ends[2];

	if (!wait_for_event(hold, ends, POLLRDHUP) && !atomic_load(&hold->taken))
		end_by_error(NO_EVENT, EXIT_SYSTEM);
	if (((ends[0].revents & POLLNVAL) == 0 || hold_owner_ended(&hold->owner)) &&
	    !atomic_load(&hold->taken))
		end_as_by_term();
	return NULL;
}

/* The same with a TTL.  When the lock is taken, the next event is the placeholder's. */
static void *end_wait_by_lines(void *of)
{
	struct hold *hold = of;
	struct pollfd ends[2];
	bool lives, taken;

	do {
		lives = wait_for_event(hold, ends, POLLIN) && !hold_owner_ended(&hold->owner) &&
		        ends[0].revents != 0;
		pthread_mutex_lock(&reading);
		taken = atomic_load(&hold->taken);
		if (!taken && (!lives || caller_lines_read(&hold->lines) != CALLER_LIVES))
			end_as_by_term();
		pthread_mutex_unlock(&reading);
	} while (!taken);
	return NULL;
}

/* Returns 0 if the end of standard input is still to come, or -1 with ERROR filled: it never comes
 * of a file or /dev/null, and where the writer has ended, the lock would be let go at once, and
 * look as if it were held. */
static int check_input(struct error *error)
{
	struct pollfd input = {STDIN_FILENO, POLLIN, 0};
	struct stat file;

	if (fstat(STDIN_FILENO, &file) != 0) {
		if (errno != EBADF)
			return error_set(error, ERROR_SYSTEM,
			    "--hold: cannot examine standard input");
	} else if (S_ISFIFO(file.st_mode) || S_ISSOCK(file.st_mode) || isatty(STDIN_FILENO)) {
		if (poll(&input, 1, 0) <= 0 || (input.revents & (POLLHUP | POLLERR)) == 0)
			return 0;
	}
	return error_plain(error, ERROR_USAGE, NO_INPUT);
}

int hold_for(struct hold *hold, pid_t owner, int64_t ttl, struct error *error)
{
	const pid_t pid = owner == 0 ? getppid() : owner;

	caller_lines_begin(&hold->lines, ttl);
	if (hold_owner_find(&hold->owner, pid, error) != 0 && owner != 0)
		return -1;
	/* the PID may have been reused before the pidfd was open */
	if (owner == 0 && (getppid() != pid || hold_owner_ended(&hold->owner)))
		return error_plain(error, ERROR_USAGE,
		    "--hold: the process that started it has ended");
	if (ttl > 0 && check_input(error) != 0)
		return -1;
	/* no signal says that a pipe is hung up or a process has ended */
	errno = signals_free_thread(NULL, ttl > 0 ? end_wait_by_lines : end_wait, hold);
	return errno == 0 ? 0 : error_no_process(error);
}

void hold_waits(unsigned i)
{
	char line[64];
	int length = snprintf(line, sizeof line, KEEPER_WAITS " %u %ld\n", i, (long)getpid());

	write_without_sigpipe(STDOUT_FILENO, line, (size_t)length);
}

void hold_taken(struct hold *hold)
{
	pthread_mutex_lock(&reading);
	atomic_store(&hold->taken, true);
	pthread_mutex_unlock(&reading);
}

/* Nothing more can be heard of the caller, which may go on for as long as it believes the lock its
 * own. */
static noreturn void keep_for_ttl(const struct hold *hold)
{
	const struct deadline end = deadline_after(hold->lines.time);

	complain("--hold: it ended without the line \"release\": the lock is kept for --ttl");
	hold_is_orphaned();
	while (deadline_left(&end) > 0)
		poll(NULL, 0, deadline_poll_time(&end));
	_exit(EXIT_LOST);
}

static noreturn void hold_by_lines(struct hold *hold)
{
	struct pollfd ends[2];

	caller_lines_begin(&hold->lines, hold->lines.time);
	while (wait_for_event(hold, ends, POLLIN) && !hold_owner_ended(&hold->owner)) {
		if (ends[0].revents == 0) {
			complain("--hold: no line came within --ttl: the lock is released");
			_exit(EXIT_LOST);
		}
		switch (caller_lines_read(&hold->lines)) {
		case CALLER_RELEASES:
			_exit(EXIT_SUCCESS);
		case CALLER_IS_GONE:
			keep_for_ttl(hold);
		case CALLER_LIVES:
			break;
		}
	}
	keep_for_ttl(hold);
}

void hold_is_orphaned(void)
{
	close(STDIN_FILENO);
	close(STDOUT_FILENO);
}

noreturn void hold_until_end(struct hold *hold)
{
	const char *slot = getenv("SEMLOCK_SLOT"), *token = getenv("SEMLOCK_TOKEN");
	char line[128 + SLOTS_MOST * sizeof "4095"], bytes[512];
	char name[32], ttl[32] = "";
	const sigset_t term = signals_only(SIGTERM);
	const int failed = hold->caller == NULL ? EXIT_SYSTEM : HOLD_ABANDONED;
	struct pollfd ends[2];
	struct error error;
	/* a keeper that is killed writes no other */
	char why = HOLD_ABANDONED;
	ssize_t got;
	int length;

	if (hold->caller != NULL) {
		/* --run-timeout ends it by SIGTERM, which the caller may have ignored or blocked */
		signal(SIGTERM, SIG_DFL);
		sigprocmask(SIG_UNBLOCK, &term, NULL);
	}
	/* the keeper may have ended it already, and has written why */
	if (hold->caller == NULL && check_input(&error) != 0) {
		complain("%s", error.text);
		_exit(exit_status_of(error.kind));
	}
	if (hold->lines.time > 0)
		snprintf(ttl, sizeof ttl, " ttl=%.9g", (double)hold->lines.time / SECOND);
	length = snprintf(line, sizeof line, "OK%s%s%s%s%s\n",
	    slot == NULL ? "" : " slot=", slot == NULL ? "" : slot,
	    token == NULL ? "" : " token=", token == NULL ? "" : token, ttl);

	snprintf(name, sizeof name, PLACEHOLDER_NAME "%ld",
	    (long)(hold->shown > 0 ? hold->shown : hold->owner.pid));
	prctl(PR_SET_NAME, name); /* --who and --replace know it by that */
	if (write(STDOUT_FILENO, line, (size_t)length) != length) {
		complain(
		    "cannot write to standard output, which is to say that the lock is held: %s",
		    strerror(errno));
		_exit(EXIT_SYSTEM);
	}
	if (hold->lines.time > 0)
		hold_by_lines(hold);
	for (;;) {
		if (!wait_for_event(hold, ends, POLLIN))
			end_by_error(NO_EVENT, failed);
		if (hold_owner_ended(&hold->owner))
			break;
		got = read(STDIN_FILENO, bytes, sizeof bytes);
		if (got > 0)
			why = bytes[got - 1];
		else if (got == 0 || errno == EIO || errno == ECONNRESET)
			break; /* also of a terminal or a connection that is cut */
		else if (errno != EINTR)
			end_by_error("cannot read standard input", failed);
	}
	_exit(hold->caller == NULL ? EXIT_SUCCESS : why);
}
