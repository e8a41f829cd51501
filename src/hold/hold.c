/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "owners/owners.h"
#include "hold/hold.h"
#include "hold/keeper.h"
#include "lock/lock.h"
#include "report/error.h"
#include "sys/deadline.h"
#include "sys/files.h"
#include "sys/process.h"
#include "sys/signals.h"
#include "sys/waiting.h"

#define NO_INPUT \
	"--hold: standard input is at its end already, which would release the lock at once: " \
	"hand it a pipe, or use --hold=PID --detach"

#define NO_EVENT "cannot wait for the end of standard input"

/* Until the lock is taken, the thread of hold_for() reads the caller's lines; after that, the
 * placeholder does.  This mutex guards that change. */
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;

/* ---- the caller's lines ---- */

enum caller_says {
	CALLER_LIVES,
	CALLER_RELEASES, /* the line "release" */
	CALLER_IS_GONE   /* the end of input, or an error */
};

/* From now on, a line must come every TIME ns; 0: none must. */
static void lines_begin(struct caller_lines *lines, int64_t time)
{
	lines->time = time;
	lines->due = time > 0 ? deadline_after(time) : deadline_never();
}

/* If standard output has no room, do not echo: a caller that writes and does not read must not stop
 * this process, which would then hold the lock forever.  The caller cannot count on a line that is
 * not echoed. */
static void echo_line(const struct caller_lines *lines)
{
	struct pollfd output = {STDOUT_FILENO, POLLOUT, 0};

	if (poll_until(&output, 1, deadline_after(0)) == 1 && (output.revents & POLLOUT) != 0)
		write_without_sigpipe(STDOUT_FILENO, lines->line, lines->length);
}

/* A line is complete: echo it, unless it is "release", and begin the next one.  Returns whether it
 * was "release". */
static bool end_line(struct caller_lines *lines)
{
	static const char release[] = "release\n";
	bool releases;

	lines->line[lines->length++] = '\n';
	releases =
	    lines->length == strlen(release) && memcmp(lines->line, release, strlen(release)) == 0;
	if (!releases)
		echo_line(lines);
	lines->length = 0;
	lines_begin(lines, lines->time);
	return releases;
}

/* Read once from standard input, which must have something to read, or be at its end.  Echo each
 * whole line on standard output, unless that has no room; the next line is then due LINES->time
 * later. */
static enum caller_says lines_read(struct caller_lines *lines)
{
	char bytes[512];
	ssize_t got;

	UNINTERRUPTED(got, read(STDIN_FILENO, bytes, sizeof bytes));
	if (got < 0 && errno == EAGAIN)
		return CALLER_LIVES;
	if (got <= 0)
		return CALLER_IS_GONE;
	for (ssize_t i = 0; i < got; i++) {
		if (bytes[i] == '\n') {
			if (end_line(lines))
				return CALLER_RELEASES;
		} else if (lines->length < sizeof lines->line - 1)
			lines->line[lines->length++] = bytes[i];
	}
	return CALLER_LIVES;
}

/* ---- the wait ---- */

/* Sleep until standard input has EVENTS (of poll(2)), the owner has ended, or a line is overdue.
 * INPUT gets the events.  Returns false with errno set if poll(2) fails. */
static bool wait_for_event(const struct hold *hold, struct pollfd *input, short events)
{
	struct pollfd ends[2];
	struct deadline next;
	int ready;

	do {
		ends[0] = (struct pollfd){STDIN_FILENO, events, 0};
		ends[1] = (struct pollfd){hold->owner.pidfd, POLLIN, 0};
		next = watched_next_look(&hold->owner);
		ready = poll_until(ends, 2, deadline_earlier(hold->lines.due, next));
		*input = ends[0];
	} while (ready >= 0 && input->revents == 0 && !watched_ended(&hold->owner) &&
		 deadline_left(&hold->lines.due) > 0);
	return ready >= 0;
}

/* The system call that waits for the end of the hold, or that ends the wait, has failed: report
 * WHAT and errno, and exit with STATUS. */
static noreturn void end_by_error(const char *what, int status)
{
	complain("--hold: %s: %s", what, strerror(errno));
	_exit(status);
}

static void end_as_by_term(void)
{
	signal(SIGTERM, SIG_DFL); /* the caller may have ignored SIGTERM */
	if (kill(getpid(), SIGTERM) != 0)
		end_by_error("cannot end the wait", EXIT_SYSTEM);
}

/* What an event means for the wait. */
enum wait_goes { WAIT_GOES_ON, WAIT_IS_UNWATCHED, WAIT_ENDS };

/* What does the event in INPUT mean for the wait?  WAITED is what wait_for_event() returned.  With
 * a TTL, the caller's lines decide. */
static enum wait_goes judge_event(struct hold *hold, bool waited, const struct pollfd *input)
{
	if (watched_ended(&hold->owner))
		return WAIT_ENDS;
	if (!waited)
		end_by_error(NO_EVENT, EXIT_SYSTEM);
	if (hold->lines.time > 0)
		return input->revents != 0 && lines_read(&hold->lines) == CALLER_LIVES
		           ? WAIT_GOES_ON
		           : WAIT_ENDS;
	/* POLLNVAL: standard input was closed at the start, and cannot be hung up */
	return (input->revents & POLLNVAL) != 0 ? WAIT_IS_UNWATCHED : WAIT_ENDS;
}

/* The thread of hold_for().  The end of standard input or of the owner ends the wait (step H3 of
 * tests/models); in the background, these are the keeper's pipe and the keeper.  Standard input
 * that cannot be hung up (closed, /dev/null, a plain file) does not end the wait.  Once the lock is
 * taken, this thread leaves the next event to the placeholder, and ends.
 *
 * Meanwhile the main thread may fork the observer.  If this thread held a lock of libc at that
 * moment, the lock would stay held in the observer forever: so take none, except to end the
 * process. */
static void *watch_caller(void *of)
{
	struct hold *hold = of;
	const short events = hold->lines.time > 0 ? POLLIN : POLLRDHUP;
	enum wait_goes goes = WAIT_GOES_ON;
	struct pollfd input;
	bool waited;

	while (goes == WAIT_GOES_ON) {
		waited = wait_for_event(hold, &input, events);
		pthread_mutex_lock(&reading);
		goes = hold->taken ? WAIT_IS_UNWATCHED : judge_event(hold, waited, &input);
		if (goes == WAIT_ENDS)
			end_as_by_term();
		pthread_mutex_unlock(&reading);
	}
	return NULL;
}

/* Returns 0 if standard input is a pipe, socket or terminal whose end is still to come, or -1 with
 * ERROR filled.  With a file, /dev/null, or a pipe without a writer, semlock would release the lock
 * at once, while the caller believes that it is held. */
static int check_input(struct error *error)
{
	struct pollfd input = {STDIN_FILENO, POLLIN, 0};
	struct stat file;

	if (fstat(STDIN_FILENO, &file) != 0) {
		if (errno != EBADF)
			return error_set(error, ERROR_SYSTEM,
			    "--hold: cannot examine standard input");
	} else if (S_ISFIFO(file.st_mode) || S_ISSOCK(file.st_mode) || isatty(STDIN_FILENO)) {
		if (poll_until(&input, 1, deadline_after(0)) <= 0 ||
		    (input.revents & (POLLHUP | POLLERR)) == 0)
			return 0;
	}
	return error_plain(error, ERROR_USAGE, NO_INPUT);
}

int hold_for(struct hold *hold, pid_t owner, int64_t ttl, struct error *error)
{
	const pid_t pid = owner == 0 ? getppid() : owner;

	lines_begin(&hold->lines, ttl);
	if (watched_begin(&hold->owner, pid) != 0 && owner != 0)
		return error_plain(error, ERROR_USAGE, "--hold=%ld: no such process", (long)pid);
	/* the parent may have ended, and its PID been reused, before its pidfd was open */
	if (owner == 0 && (getppid() != pid || watched_ended(&hold->owner)))
		return error_plain(error, ERROR_USAGE,
		    "--hold: the process that started it has ended");
	/* in the background, the input is the keeper's */
	if (hold->caller == NULL && check_input(error) != 0)
		return -1;
	/* start a thread, because no signal reports that a pipe was hung up, or that a process has
	 * ended */
	errno = signals_free_thread(NULL, watch_caller, hold);
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
	hold->taken = true;
	pthread_mutex_unlock(&reading);
}

/* No more lines can come from the caller, which may be alive and believe that it holds the lock.
 * It believes that for the TTL at most: keep the lock that long, then exit. */
static noreturn void keep_for_ttl(const struct hold *hold)
{
	const struct deadline end = deadline_after(hold->lines.time);

	complain("--hold: no more input, and no line \"release\": the lock is kept for --ttl");
	hold_is_orphaned();
	if (poll_until(NULL, 0, end) < 0)
		end_by_error("cannot wait for --ttl", EXIT_SYSTEM);
	_exit(EXIT_LOST);
}

static noreturn void hold_by_lines(struct hold *hold)
{
	struct pollfd input;

	lines_begin(&hold->lines, hold->lines.time);
	while (wait_for_event(hold, &input, POLLIN) && !watched_ended(&hold->owner)) {
		if (input.revents == 0) {
			complain("--hold: no line came within --ttl: the lock is released");
			_exit(EXIT_LOST);
		}
		switch (lines_read(&hold->lines)) {
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
	char line[KEEPER_MESSAGE], bytes[512];
	char name[32], ttl[32] = "";
	const sigset_t term = signals_only(SIGTERM);
	const int failed = hold->caller == NULL ? EXIT_SYSTEM : HOLD_ABANDONED;
	struct pollfd input;
	struct error error;
	/* this reason stands if the keeper is killed, because then it writes none */
	char why = HOLD_ABANDONED;
	ssize_t got;
	int length;

	if (hold->caller != NULL) {
		/* --run-timeout ends this process with SIGTERM, which the caller may have ignored
		 * or blocked */
		signal(SIGTERM, SIG_DFL);
		sigprocmask(SIG_UNBLOCK, &term, NULL);
	}
	/* in the background, do not check: the keeper may have ended the hold already, and written
	 * why */
	if (hold->caller == NULL && check_input(&error) != 0) {
		complain("%s", error.text);
		_exit(exit_status_of(error.kind));
	}
	if (hold->lines.time > 0)
		snprintf(ttl, sizeof ttl, " ttl=%.9g", (double)hold->lines.time / SECOND);
	length = snprintf(line, sizeof line, "OK%s%s%s%s%s%s%s\n",
	    hold->id == NULL ? "" : " id=", hold->id == NULL ? "" : hold->id,
	    slot == NULL ? "" : " slot=", slot == NULL ? "" : slot,
	    token == NULL ? "" : " token=", token == NULL ? "" : token, ttl);

	snprintf(name, sizeof name, PLACEHOLDER_NAME "%ld",
	    (long)(hold->shown_owner > 0 ? hold->shown_owner : hold->owner.pid));
	prctl(PR_SET_NAME, name); /* by this, --who and --replace recognise the placeholder */
	if (write(STDOUT_FILENO, line, (size_t)length) != length) {
		complain("cannot say on standard output that the lock is held: %s",
		    strerror(errno));
		_exit(EXIT_SYSTEM);
	}
	if (hold->lines.time > 0)
		hold_by_lines(hold);
	for (;;) {
		if (!wait_for_event(hold, &input, POLLIN))
			end_by_error(NO_EVENT, failed);
		if (watched_ended(&hold->owner))
			break;
		got = read(STDIN_FILENO, bytes, sizeof bytes);
		if (got > 0)
			why = bytes[got - 1];
		else if (got == 0 || errno == EIO || errno == ECONNRESET)
			/* end of file; or a terminal (EIO) or a connection (ECONNRESET) was cut */
			break;
		else if (errno != EINTR)
			end_by_error("cannot read standard input", failed);
	}
	_exit(hold->caller == NULL ? EXIT_SUCCESS : why);
}
