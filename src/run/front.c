/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "report/status_fd.h"
#include "report/text.h"
#include "run/front.h"
#include "run/observer.h"
#include "run/outcome.h"
#include "hold/keeper.h"
#include "hold/keeper_client.h"
#include "sys/crash_points.h"
#include "sys/deadline.h"
#include "sys/files.h"
#include "sys/waiting.h"

/* Until the keeper has reported that the lock is busy, this call waits for this much longer than
 * -w: a server may be slow to report that the lock is free. */
#define GRACE (2 * SECOND)

/* --resume waits for the keeper's first message for this much longer than -w: the machine may be
 * busy. */
#define TO_ANSWER (10 * SECOND)

struct front {
	const struct request *request;
	int keeper; /* a socket to the keeper */
	/* when this call stops waiting; never: without -w, or if the holder enforces -w */
	struct deadline end;
};

/* What is known of the wait. */
struct waiting {
	const struct front *front;
	struct show show;
	bool busy;             /* the keeper has said that the lock is busy */
	struct lock lock;      /* the one waited for */
	char id[HOLD_ID_SIZE]; /* "": not known yet */
};

static bool is_resumed(const struct front *front)
{
	return front->request->resume != NULL;
}

/* ---- what the holder says ---- */

/* Pass on MESSAGE if it is text from the holder's standard error, or an event for --status-fd.
 * Returns false if it is neither. */
static bool front_relay(const char *message)
{
	if (*message == KEEPER_TEXT) {
		observer_end(); /* else MESSAGE would be appended to the waiting line */
		write_without_sigpipe(STDERR_FILENO, message + 1, strlen(message + 1));
	} else if (islower((unsigned char)*message))
		status_fd_event("%s", message);
	else
		return false;
	return true;
}

/* ---- what this call says ---- */

/* Print WORDS on standard output.  If that fails, print a message that the caller was not told what
 * HAS says, such as "the lock is held", and return false. */
static bool print_words(const char *words, const char *has)
{
	char line[KEEPER_MESSAGE + 8];
	int length = snprintf(line, sizeof line, "%s\n", words);
	ssize_t put;

	UNINTERRUPTED(put, write(STDOUT_FILENO, line, (size_t)length));
	if (put == length)
		return true;
	complain("cannot say on standard output that %s: %s", has,
	    put < 0 ? strerror(errno) : "no room for the whole line");
	return false;
}

/* This call fails.  If it is the first call, end the hold or the place, and wait until the keeper
 * has released it.  Returns the exit status. */
static int give_up(const struct front *front)
{
	char rest[KEEPER_MESSAGE + 1];

	if (is_resumed(front))
		return EXIT_SYSTEM;
	shutdown(front->keeper, SHUT_WR);
	while (keeper_hear(front->keeper, rest, 0) > 0)
		;
	return EXIT_SYSTEM;
}

/* --resume fails with ERROR.  Returns the exit status. */
static int end_resumed(const struct request *request, const struct error *error)
{
	complain("%s: --resume=%s: %s", request->label, request->resume, error->text);
	return exit_status_of(error->kind);
}

/* Fill ERROR after a message that no keeper sends.  Returns ERROR. */
static const struct error *say_nonsense(struct error *error)
{
	error_plain(error, ERROR_UNAVAILABLE,
	    "the process that keeps it has sent an invalid message");
	return error;
}

/* The keeper's ANSWER ends the wait or the hold.  Returns the exit status, or dies as the holder
 * did. */
static int end_with(const struct front *front, char *answer)
{
	const struct request *request = front->request;
	struct error error;
	char *text;
	int status;

	if (is_resumed(front)) /* the keeper may be another user's: do not die of its signal */
		return end_resumed(request, keeper_answer(answer, &text, &error) == EXIT_SUCCESS
						? say_nonsense(&error)
						: &error);
	status = (int)strtol(answer, &text, 10);
	text += strspn(text, " ");
	if (*text != '\0')
		complain("%s: %s", request->label, text);
	return outcome_die(&(struct run_outcome){.signal = status > 128 ? status - 128 : 0},
	    status);
}

/* The caller knows the ID: send ACK, after which the end of this call ends nothing.  The hold may
 * be ending at this moment: wait for the keeper's answer.  Returns STATUS, or, if the hold has
 * ended, its exit status.  With --resume, only returns STATUS. */
static int acknowledge(const struct front *front, int status)
{
	char message[KEEPER_MESSAGE + 1];
	ssize_t got;

	if (is_resumed(front))
		return status;
	if (keeper_say(front->keeper, KEEPER_ACK) != 0 && errno != EPIPE &&
	    errno != ECONNRESET) { /* EPIPE, ECONNRESET: seen below */
		complain("%s: given up: cannot write to its keeper: %s", front->request->label,
		    strerror(errno));
		give_up(front);
		return EXIT_LOST;
	}
	do {
		got = keeper_hear(front->keeper, message, 0);
		if (isdigit((unsigned char)*message))
			return atoi(message) == EXIT_SUCCESS ? status : end_with(front, message);
	} while (got > 0); /* an OK may have crossed our WAITING: read on */
	complain("%s: the process that holds it has been killed", front->request->label);
	return EXIT_LOST;
}

/* The lock is held: print WORDS, the line with OK, unless the hold ended while this call was
 * stopped.  Returns the exit status. */
static int say_ok(const struct front *front, const char *words)
{
	char since[KEEPER_MESSAGE + 1];

	CRASH_POINT("detach.taken");
	keeper_hear(front->keeper, since, MSG_DONTWAIT);
	if (isdigit((unsigned char)*since))
		return end_with(front, since);
	if (!print_words(words, "the lock is held"))
		return give_up(front);
	CRASH_POINT("detach.said");
	return acknowledge(front, EXIT_SUCCESS);
}

/* -w is over, and the place is kept: print WAITING.  Returns the exit status. */
static int say_waiting(const struct waiting *wait)
{
	const struct request *request = wait->front->request;
	char words[HOLD_ID_SIZE + 16];
	struct run_outcome outcome;
	int status;

	observer_end();
	CRASH_POINT("detach.waited");
	snprintf(words, sizeof words, "WAITING id=%s", wait->id);
	if (!print_words(words, "the place in the queue is kept"))
		return give_up(wait->front);
	CRASH_POINT("detach.placed");
	status = acknowledge(wait->front, request->busy_status);
	if (status == request->busy_status)
		outcome_busy(&outcome, request, &wait->lock,
		    request->nonblocking ? BUSY_NOW : BUSY_TIMEOUT);
	return status;
}

/* ---- what the keeper says ---- */

/* The lock is busy: show the wait.  WORDS: the lock's number in the request, and the PID of the
 * holder, which waits. */
static void show_wait(struct waiting *wait, const char *words)
{
	const struct request *request = wait->front->request;
	unsigned i;
	long pid;

	wait->busy = true;
	if (sscanf(words, "%u %ld", &i, &pid) != 2 || i >= request->nlocks)
		return;
	wait->lock = LOCK_OF(&request->locks[i]);
	wait->show.asker = (pid_t)pid;
	if (deadline_left(&wait->front->end) > 0)
		observer_start(&wait->show, &wait->lock);
}

/* Act on a message from the keeper.  Returns the exit status, or -1: the wait goes on. */
static int front_obey(struct waiting *wait, char *message)
{
	const struct front *front = wait->front;
	const char *waits = text_after_word(message, KEEPER_WAITS);
	const char *id = text_after_word(message, KEEPER_ID);

	if (id != NULL)
		snprintf(wait->id, sizeof wait->id, "%s", id);
	else if (waits != NULL)
		show_wait(wait, waits);
	if (id != NULL || waits != NULL || front_relay(message))
		return -1;
	observer_end();
	return isdigit((unsigned char)*message) ? end_with(front, message) : say_ok(front, message);
}

/* Is MESSAGE the OK of the hold ID, and safe to print? */
static bool is_ok_of(const char *message, const char *id)
{
	static const char ok[] = KEEPER_OK " id=";
	const char *words = message + strlen(ok);
	const size_t length = strlen(id);

	if (strncmp(message, ok, strlen(ok)) != 0 || strncmp(words, id, length) != 0 ||
	    (words[length] != ' ' && words[length] != '\0'))
		return false;
	for (; *words != '\0'; words++)
		if (*words < ' ' || *words > '~')
			return false;
	return true;
}

/* As front_obey(), for --resume.  The keeper may be another user's, so accept only ID, ENDING,
 * WAITS, OK and an exit status. */
static int obey_other(struct waiting *wait, char *message)
{
	const struct request *request = wait->front->request;
	struct error error;

	if (strcmp(message, KEEPER_ID) == 0 || strcmp(message, KEEPER_ENDING) == 0)
		return -1;
	if (text_after_word(message, KEEPER_WAITS) != NULL || isdigit((unsigned char)*message) ||
	    is_ok_of(message, request->resume))
		return front_obey(wait, message);
	observer_end();
	return end_resumed(request, say_nonsense(&error));
}

/* Read a message from the keeper.  Returns the exit status, or -1: the wait goes on. */
static int hear_keeper(struct waiting *wait)
{
	const struct front *front = wait->front;
	char message[KEEPER_MESSAGE + 1];

	if (keeper_hear(front->keeper, message, 0) > 0)
		return is_resumed(front) ? obey_other(wait, message) : front_obey(wait, message);
	observer_end();
	if (errno == EMSGSIZE) {
		complain("%s: the process that keeps it sent too much text", front->request->label);
		return give_up(front);
	}
	complain("%s: the process that waits for it has been killed", front->request->label);
	return is_resumed(front) ? EXIT_LOST : EXIT_SYSTEM;
}

/* ---- the wait ---- */

/* poll(2) is refused, and always will be: give up.  Returns the exit status. */
static int cannot_wait(const struct front *front)
{
	const int errnum = errno;

	observer_end();
	complain("%s: cannot wait for the lock: %s", front->request->label, strerror(errnum));
	return give_up(front);
}

/* When this call stops waiting.  For the first call the holder enforces -w, unless --keep-place. */
static struct deadline end_of(const struct request *request)
{
	if (request->resume != NULL && request->nonblocking)
		return deadline_after(0);
	if (request->wait >= 0 && (request->resume != NULL || request->keep_place))
		return deadline_after(request->wait);
	return deadline_never();
}

/* When to print WAITING; never before the ID is known. */
static struct deadline time_up(const struct waiting *wait)
{
	struct deadline end = wait->front->end;

	if (wait->id[0] == '\0')
		return deadline_never();
	if (!wait->busy)
		end.at += GRACE;
	return end;
}

static int wait_for_keeper(const struct front *front)
{
	static struct waiting wait; /* static: the observer knows a wait by its lock's address */
	struct pollfd event = {front->keeper, POLLIN, 0};
	int status = -1, count;

	wait = (struct waiting){
	    .front = front,
	    .show = show_of(front->request),
	    .lock = LOCK_OF(&front->request->locks[0]),
	};
	if (is_resumed(front))
		snprintf(wait.id, sizeof wait.id, "%s", front->request->resume);
	while (status < 0) {
		count = poll_until(&event, 1, time_up(&wait));
		if (count > 0)
			status = hear_keeper(&wait);
		else if (count == 0)
			status = say_waiting(&wait);
		else
			status = cannot_wait(front);
	}
	return status;
}

int front_wait(const struct request *request, int keeper)
{
	return wait_for_keeper(&(struct front){request, keeper, end_of(request)});
}

int front_resume(const struct request *request)
{
	struct front front = {.request = request, .end = end_of(request)};
	struct deadline first = front.end; /* until the keeper's first message */
	struct keeper_call call;
	struct error error;

	first.at += TO_ANSWER;
	if (keeper_call(request, request->resume, KEEPER_RESUME, &call, &error) != 0 ||
	    keeper_await(&call, first, &error) != 0)
		return end_resumed(request, &error);
	front.keeper = call.connection;
	return wait_for_keeper(&front);
}
