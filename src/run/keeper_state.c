/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/keeper_state.h"
#include "sys/crash_points.h"
#include "sys/files.h"

/* ---- messages ---- */

void keeper_say(int to, const char *text)
{
	ssize_t sent = -1;

	if (to < 0)
		return;
	UNINTERRUPTED(sent, send(to, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT));
	if (sent < 0 && errno != EAGAIN) /* for room, see say_news() */
		shutdown(to, SHUT_RDWR); /* else TO would wait for the answer without an end */
}

void keeper_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void keeper_reply(int *client, int status, const char *text)
{
	char message[256];

	snprintf(message, sizeof message, "%d %s", status, text);
	keeper_say(*client, message);
	keeper_close(client);
}

/* ---- how it ends ---- */

const char *hold_end_text(int status)
{
	switch (status) {
	case HOLD_RELEASED:
		return "released";
	case HOLD_ORPHANED:
		return "owner-ended";
	case HOLD_ABANDONED:
		return "abandoned";
	}
	return NULL;
}

void keeper_end_holder(struct keeper *keeper, enum hold_end why, const char *reason)
{
	const char word = (char)why;

	if (keeper->state >= KEEPER_ENDS)
		return;
	keeper->state = KEEPER_ENDS;
	keeper->verdict = why == HOLD_RELEASED ? EXIT_SUCCESS : EXIT_LOST;
	snprintf(keeper->reason, sizeof keeper->reason, "%s", reason);
	/* A stopped holder has to run to see the word.  Not after it: the holder may be ending
	 * then, and a SIGCONT takes from whatever attaches to it at its end, as a leak checker
	 * does, the stop for which that waits (ptrace(2)). */
	kill(keeper->holder, SIGCONT);
	CRASH_POINT("detach.ending");
	write_without_sigpipe(keeper->input, &word, 1);
	keeper_close(&keeper->input);
}

/* Nobody reads what the holder says while it waits in a kept place: keep the last line of TEXT, why
 * it fails if it does. */
static void note_last_line(struct keeper *keeper, char *text)
{
	static const char program[] = "semlock: ";
	char *line;

	line = strrchr(text, '\n');
	if (line == NULL)
		return;
	*line = '\0';
	line = strrchr(text, '\n');
	line = line == NULL ? text : line + 1;
	if (strncmp(line, program, strlen(program)) == 0)
		line += strlen(program);
	snprintf(keeper->reason, sizeof keeper->reason, "%.159s", line);
}

/* What the holder says is read, so that no helper waits for a reader. */
void keeper_read_errors(struct keeper *keeper)
{
	char text[1024];
	ssize_t got;

	UNINTERRUPTED(got, read(keeper->errors, text, sizeof text - 1));
	if (got == 0 || (got < 0 && errno != EAGAIN))
		keeper_close(&keeper->errors);
	if (got <= 0)
		return;
	text[got] = '\0';
	if (keeper->state == KEEPER_TAKES)
		note_last_line(keeper, text);
}

/* The holder has ended by itself, with STATUS of waitpid(2), while it waited in a kept place. */
static void note_failure(struct keeper *keeper, int status)
{
	const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	const char *reason = "the process that waited for the lock was killed";

	if (keeper->errors >= 0)
		keeper_read_errors(keeper);
	/* less than that is no failure: such a status says that the lock is busy */
	keeper->verdict = code >= EXIT_USAGE ? code : EXIT_LOST;
	if (code >= EXIT_USAGE && keeper->reason[0] != '\0')
		return;
	if (code >= 0)
		reason = "the wait for the lock was given up";
	snprintf(keeper->reason, sizeof keeper->reason, "%s", reason);
}

/* The holder has ended by itself, with STATUS of waitpid(2). */
static void note_end(struct keeper *keeper, int status)
{
	const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	const char *reason = "the process that held the lock was killed";

	if (code == EXIT_LOST)
		reason = "the lock was lost while it was held";
	else if (code == EXIT_RUNTIMEOUT)
		reason = "its --run-timeout was over";
	keeper->verdict = EXIT_LOST;
	snprintf(keeper->reason, sizeof keeper->reason, "%s", reason);
}

/* Without an owner there is no end of a memory. */
static bool remember(struct keeper *keeper)
{
	if (keeper->owner.pid == 0 || hold_owner_ended(&keeper->owner))
		return false;
	keeper->state = KEEPER_REMEMBERS;
	keeper_close(&keeper->input);
	keeper_close(&keeper->output);
	keeper_close(&keeper->errors);
	keeper_close(&keeper->events);
	return true;
}

/* Tell all that wait for it that the holder has ended, with STATUS of waitpid(2), which is KNOWN or
 * not; and the first call why, if the holder was told to end. */
static void tell_end(struct keeper *keeper, int status, bool known)
{
	const bool asked_to = keeper->verdict == EXIT_SUCCESS;
	const bool told = keeper->state == KEEPER_ENDS;
	const char *its_end = asked_to ? "another call has released it" : keeper->reason;
	char message[sizeof keeper->reason + 32];

	if (keeper->known && keeper->front >= 0)
		keeper_reply(&keeper->front, asked_to ? EXIT_LOST : keeper->verdict, its_end);
	if (!known)
		its_end = "how the holding process has ended cannot be seen: waitpid(2) is refused";
	snprintf(message, sizeof message, KEEPER_ENDED " %d%s%s", status, told || !known ? " " : "",
	    told || !known ? its_end : "");
	keeper_say(keeper->front, message);
	for (size_t i = 0; i < KEEPER_CLIENTS; i++) {
		if (keeper->clients[i] < 0)
			continue;
		if (asked_to && keeper->clients[i] != keeper->releaser)
			keeper_reply(&keeper->clients[i], EXIT_LOST,
			    "another call has released it");
		else
			keeper_reply(&keeper->clients[i], keeper->verdict, keeper->reason);
	}
}

/* The lock was held once, or is. */
static bool has_held(const struct keeper *keeper)
{
	return keeper->news.line != NULL && strncmp(keeper->news.line, "OK ", strlen("OK ")) == 0;
}

/* The holder has ended, which was ASKED for or not.  *STATUS, of waitpid(2), is what the front is
 * told. */
static void judge_end(struct keeper *keeper, bool asked, int *status)
{
	const bool exited = WIFEXITED(*status);
	const bool lost = exited && WEXITSTATUS(*status) == EXIT_LOST;
	const bool told = exited && hold_end_text(WEXITSTATUS(*status)) != NULL;
	/* a hold may have been killed before it was told to end; a waiter cannot be told */
	const bool killed = keeper->verdict == EXIT_SUCCESS && !told && has_held(keeper);

	if (!asked || lost || killed)
		note_end(keeper, *status);
	/* its own says why the placeholder has ended */
	if (told)
		*status = EXIT_LOST << 8;
	if (keeper->verdict == EXIT_SYSTEM) /* the keeper has failed while it waited */
		*status = EXIT_SYSTEM << 8;
}

bool keeper_holder_ended(struct keeper *keeper)
{
	const bool asked = keeper->state == KEEPER_ENDS;
	int status = 0;
	pid_t waited;

	/* until it has ended, the next one cannot enter: no call is answered before (H8) */
	UNINTERRUPTED(waited, waitpid(keeper->holder, &status, 0));
	if (waited < 0)
		status = EXIT_SYSTEM << 8;
	CRASH_POINT("detach.released");
	if (keeper->known && !asked && !has_held(keeper))
		note_failure(keeper, status);
	else
		judge_end(keeper, asked, &status);
	/* No call may connect once others know of the end: it would be cut off without an answer.
	 */
	if (asked || !keeper->known)
		keeper_close(&keeper->socket);
	tell_end(keeper, status, waited >= 0);
	return !asked && keeper->known && remember(keeper);
}
