/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/status_fd.h"
#include "report/text.h"
#include "run/front.h"
#include "run/keeper_client.h"
#include "run/keeper_state.h"
#include "run/observer.h"
#include "run/outcome.h"
#include "sys/crash_points.h"
#include "sys/deadline.h"
#include "sys/files.h"

/* A lock may be free, and a server may take its time to say so: before it is known that the lock is
 * busy, the time is not up. */
#define GRACE (2 * SECOND)

enum progress {
	ASKED,    /* nothing has been heard yet */
	WAITING,  /* the lock is busy */
	TIMED_OUT /* the first call has asked for the place to be kept */
};

/* What is known of the wait. */
struct waiting {
	const struct front *front;
	struct show show;
	struct deadline end; /* of this call's wait; never: there is none, or the holder keeps it */
	enum progress progress;
	struct lock lock; /* that is waited for */
};

static bool is_resumed(const struct front *front)
{
	return front->request->resume != NULL;
}

/* ---- what the holder has said ---- */

/* Write what was said on FROM, so far, to TO. */
static void relay(int from, int to)
{
	char bytes[1024];
	ssize_t got;

	while (from >= 0 && (got = read(from, bytes, sizeof bytes)) > 0)
		write_without_sigpipe(to, bytes, (size_t)got);
}

static void relay_all(const struct front *front)
{
	relay(front->errors, STDERR_FILENO);
	relay(front->events, status_fd);
}

/* ---- what this call says ---- */

/* Print WORDS on standard output.  Returns false, with a message, when the caller cannot be told
 * that it HAS this. */
static bool print_words(const char *words, const char *has)
{
	char line[KEEPER_MESSAGE + 8];
	int length = snprintf(line, sizeof line, "%s\n", words);
	ssize_t put;

	UNINTERRUPTED(put, write(STDOUT_FILENO, line, (size_t)length));
	if (put == length)
		return true;
	complain("cannot write to standard output, which is to say that %s: %s", has,
	    put < 0 ? strerror(errno) : "no room for the whole line");
	return false;
}

/* Returns 0, or the errno of why WORD cannot be sent.  A keeper that has ended is no error here:
 * that is seen where its answer is read. */
static int tell_keeper(const struct front *front, const char *word)
{
	ssize_t sent;

	UNINTERRUPTED(sent, send(front->keeper, word, strlen(word), MSG_NOSIGNAL));
	return sent < 0 && errno != EPIPE && errno != ECONNRESET ? errno : 0;
}

/* The first call could not print what it has: wait for the end of that. */
static int give_up(const struct front *front)
{
	char rest[KEEPER_MESSAGE];

	if (is_resumed(front))
		return EXIT_SYSTEM;
	shutdown(front->keeper, SHUT_WR);
	while (recv(front->keeper, rest, sizeof rest, 0) > 0)
		;
	return EXIT_SYSTEM;
}

/* The holder has ended, as WORDS of the keeper's say: its status, of waitpid(2), and why.  End like
 * it. */
static int end_as(const struct front *front, const char *words)
{
	char *why;
	const int status = (int)strtol(words, &why, 10);

	why += strspn(why, " ");
	if (*why != '\0')
		complain("%s: %s", front->request->label, why);
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	return outcome_die(&(struct run_outcome){.signal = WTERMSIG(status)},
	    128 + WTERMSIG(status));
}

/* The caller knows the ID: from now on the end of this call ends nothing.  A hold that ends at this
 * moment does not know that: wait for the answer.  Returns STATUS, or that of the end. */
static int acknowledge(const struct front *front, int status)
{
	char message[KEEPER_MESSAGE + 1];
	const char *end;
	ssize_t got;
	int errnum;

	if (is_resumed(front))
		return status;
	errnum = tell_keeper(front, KEEPER_ACK);
	if (errnum != 0) {
		complain("%s: given up, as this call cannot confirm it: %s", front->request->label,
		    strerror(errnum));
		give_up(front);
		return EXIT_LOST;
	}
	do {
		UNINTERRUPTED(got, recv(front->keeper, message, KEEPER_MESSAGE, 0));
		message[got > 0 ? got : 0] = '\0';
		if (strcmp(message, KEEPER_KNOWN) == 0)
			return status;
		end = text_after_word(message, KEEPER_ENDED);
		if (end != NULL)
			return end_as(front, end);
	} while (got > 0);
	complain("%s: the process that holds it has been killed", front->request->label);
	return EXIT_LOST;
}

/* The lock is held: say so, unless it has ended since, while this call was stopped.  Returns the
 * exit status. */
static int say_ok(const struct front *front, const char *words)
{
	char since[KEEPER_MESSAGE + 1];
	const char *end;
	ssize_t got;

	CRASH_POINT("detach.taken");
	UNINTERRUPTED(got, recv(front->keeper, since, KEEPER_MESSAGE, MSG_DONTWAIT));
	since[got > 0 ? got : 0] = '\0';
	end = text_after_word(since, KEEPER_ENDED);
	if (end != NULL)
		return end_as(front, end);
	if (!print_words(words, "the lock is held"))
		return give_up(front);
	CRASH_POINT("detach.said");
	return acknowledge(front, EXIT_SUCCESS);
}

/* The time is up, and the place is kept: say so.  Returns the exit status. */
static int say_waiting(const struct waiting *wait, const char *words)
{
	const struct request *request = wait->front->request;
	struct run_outcome outcome;
	int status;

	CRASH_POINT("detach.waited");
	if (!print_words(words, "the place in the queue is kept"))
		return give_up(wait->front);
	CRASH_POINT("detach.placed");
	status = acknowledge(wait->front, request->busy_status);
	if (status == request->busy_status)
		outcome_busy(&outcome, request, &wait->lock,
		    request->nonblocking ? BUSY_NOW : BUSY_TIMEOUT);
	return status;
}

/* ---- what is heard ---- */

/* WORDS: the number of a lock, and the holder's PID. */
static void show_wait(struct waiting *wait, const char *words)
{
	const struct request *request = wait->front->request;
	unsigned i;
	long pid;

	if (wait->progress == ASKED)
		wait->progress = WAITING;
	if (sscanf(words, "%u %ld", &i, &pid) != 2 || i >= request->nlocks)
		return;
	wait->lock = LOCK_OF(&request->locks[i]);
	wait->show.asker = (pid_t)pid;
	if (deadline_left(&wait->end) > 0)
		observer_start(&wait->show, &wait->lock);
}

/* The keeper does not let --resume wait, and says why. */
static int end_with(const struct request *request, char *answer)
{
	struct error error;
	char *text;

	if (keeper_answer(answer, &text, &error) == 0)
		return EXIT_SUCCESS;
	complain("%s: --resume=%s: %s", request->label, request->resume, error.text);
	return exit_status_of(error.kind);
}

/* A message from the keeper.  Returns the exit status, or -1: the wait goes on. */
static int obey(struct waiting *wait, char *message)
{
	const struct front *front = wait->front;
	const char *words = text_after_word(message, KEEPER_WAITS);

	if (words != NULL) {
		relay_all(front);
		show_wait(wait, words);
		return -1;
	}
	observer_end();
	relay_all(front);
	words = text_after_word(message, KEEPER_ENDED);
	if (words != NULL)
		return end_as(front, words);
	if (text_after_word(message, KEEPER_WAITING) != NULL)
		return say_waiting(wait, message);
	if (isdigit((unsigned char)*message))
		return end_with(front->request, message);
	return say_ok(front, message);
}

/* Returns the exit status, or -1: the wait goes on. */
static int hear_keeper(struct waiting *wait)
{
	const struct front *front = wait->front;
	char message[KEEPER_MESSAGE + 1];
	ssize_t got;

	UNINTERRUPTED(got, recv(front->keeper, message, KEEPER_MESSAGE, 0));
	if (got > 0) {
		message[got] = '\0';
		return obey(wait, message);
	}
	observer_end();
	relay_all(front);
	complain("%s: the process that waits for it has been killed", front->request->label);
	return is_resumed(front) ? EXIT_LOST : EXIT_SYSTEM;
}

/* ---- the wait ---- */

/* Of the first call, the holder keeps to -w, unless the place is kept. */
static struct deadline end_of(const struct request *request)
{
	if (request->resume != NULL && request->nonblocking)
		return deadline_after(0);
	if (request->wait >= 0 && (request->resume != NULL || request->keep_place))
		return deadline_after(request->wait);
	return deadline_never();
}

/* For how many ms poll(2) may sleep; -1: without an end. */
static int poll_time(const struct waiting *wait)
{
	struct deadline end = wait->end;

	if (end.never || wait->progress == TIMED_OUT)
		return -1;
	if (wait->progress == ASKED)
		end.at += GRACE;
	return deadline_poll_time(&end);
}

/* Nothing was heard until the time was up.  Returns the exit status, or -1: the keeper answers. */
static int time_is_up(struct waiting *wait)
{
	const struct front *front = wait->front;
	char words[KEEPER_MESSAGE];
	int errnum;

	if (is_resumed(front)) {
		observer_end();
		snprintf(words, sizeof words, KEEPER_WAITING " id=%s", front->request->resume);
		return say_waiting(wait, words);
	}
	wait->progress = TIMED_OUT;
	errnum = tell_keeper(front, KEEPER_KEEP);
	if (errnum == 0)
		return -1; /* the next event tells */
	observer_end();
	complain("%s: cannot ask for the place to be kept: %s", front->request->label,
	    strerror(errnum));
	return give_up(front);
}

int front_wait(const struct front *front)
{
	static struct waiting
	    wait; /* static: the observer tells one wait from the next by its lock */
	struct pollfd events[] = {
	    {front->keeper, POLLIN, 0},
	    {front->errors, POLLIN, 0},
	    {front->events, POLLIN, 0},
	};
	int status = -1, count;

	wait = (struct waiting){
	    .front = front,
	    .show = show_of(front->request),
	    .end = end_of(front->request),
	    .lock = LOCK_OF(&front->request->locks[0]),
	};
	while (status < 0) {
		count = poll(events, 3, poll_time(&wait));
		if (count < 0)
			continue; /* a signal: the observer's handler has seen to it */
		for (size_t i = 1; i < 3; i++)
			if ((events[i].revents & POLLIN) == 0 && events[i].revents != 0)
				events[i].fd = -1; /* hung up */
		if (events[0].revents != 0)
			status = hear_keeper(&wait);
		else if (count > 0)
			relay_all(front);
		else if (poll_time(&wait) == 0)
			status = time_is_up(&wait);
	}
	return status;
}

int front_resume(const struct request *request)
{
	struct front front = {.request = request, .errors = -1, .events = -1};
	struct error error;

	front.keeper = keeper_call(request, request->resume, KEEPER_RESUME, &error);
	if (front.keeper >= 0)
		return front_wait(&front);
	complain("%s: --resume=%s: %s", request->label, request->resume, error.text);
	return exit_status_of(error.kind);
}
