/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/keeper.h"
#include "sys/crash_points.h"
#include "sys/files.h"
#include "sys/process.h"

/* How long a lock is kept for a first call that is stopped before it has said OK.  By then the
 * others would have passed a waiter that is stopped. */
#define PATIENCE (5 * SECOND)

/* ---- it begins ---- */

int keeper_begin(struct keeper *keeper, const struct request *request, struct error *error)
{
	*keeper = (struct keeper){
	    .holder = -1,
	    .input = -1,
	    .output = -1,
	    .front = -1,
	    .first = getpid(),
	    .patience = deadline_never(),
	    .socket = -1,
	    .errors = -1,
	    .events = -1,
	    .releaser = -1,
	};
	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		keeper->clients[i] = -1;
	keeper->method = request->spec.method->name;
	if (request->spec.slots > 0 || request->spec.range.start > 0 ||
	    request->spec.range.length > 0)
		keeper->method = "";
	if (request->owner == getpid())
		return error_plain(error, ERROR_USAGE,
		    "--hold=%ld: that is this semlock, which ends now (a shell becomes the last "
		    "command that it runs): name a process that lives on",
		    (long)request->owner);
	if (hold_owner_find(&keeper->owner, request->owner, error) != 0)
		return -1;
	return hold_names_list(&keeper->names, request, error);
}

/* poll(2) refuses more descriptors than may be open, and a connection that cannot be accepted would
 * wake the keeper for ever.  Returns 0, or -1 with ERROR filled. */
static int allow_descriptors(struct error *error)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= KEEPER_DESCRIPTORS)
		return 0;
	limit.rlim_cur = KEEPER_DESCRIPTORS;
	if (limit.rlim_max < KEEPER_DESCRIPTORS)
		return error_plain(error, ERROR_SYSTEM,
		    "a hold in the background needs %d descriptors, and no more than %lu may be "
		    "open: raise the limit (ulimit -n)",
		    KEEPER_DESCRIPTORS, (unsigned long)limit.rlim_max);
	return setrlimit(RLIMIT_NOFILE, &limit) == 0
	           ? 0
	           : error_set(error, ERROR_SYSTEM, "cannot raise the limit of open descriptors");
}

int keeper_listen(struct keeper *keeper, struct error *error)
{
	struct sockaddr_un address;
	socklen_t length;

	if (allow_descriptors(error) != 0 || hold_id_make(keeper->id, error) != 0)
		return -1;
	length = hold_id_address(keeper->id, &address);
	keeper->socket = descriptor_above_standard(
	    socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (keeper->socket < 0 || bind(keeper->socket, (struct sockaddr *)&address, length) != 0 ||
	    listen(keeper->socket, KEEPER_CLIENTS) != 0)
		return error_set(error, ERROR_SYSTEM, "cannot make a socket for --release");
	return 0;
}

/* Standard error is the front's still, and the caller's. */
noreturn void keeper_fail(const struct keeper *keeper, const struct error *error)
{
	char message[32];
	ssize_t sent;
	int length;

	complain("--detach: %s", error->text);
	length =
	    snprintf(message, sizeof message, KEEPER_ENDED " %d", exit_status_of(error->kind) << 8);
	UNINTERRUPTED(sent, send(keeper->front, message, (size_t)length, MSG_NOSIGNAL));
	_exit(EXIT_SUCCESS);
}

/* ---- what comes up ---- */

/* Three quarters of the room in the socket are kept free. */
static bool front_has_room(const struct keeper *keeper)
{
	struct pollfd front = {keeper->front, POLLOUT, 0};

	return poll(&front, 1, 0) == 1 && (front.revents & POLLOUT) != 0;
}

/* A call that is stopped reads nothing, and the lock may change hands many times meanwhile: such
 * news waits for room, so that there is some for OK and for the end. */
static void say_news(struct keeper *keeper)
{
	keeper->news.owed =
	    keeper->front >= 0 && keeper->state == KEEPER_TAKES && !front_has_room(keeper);
	if (!keeper->news.owed)
		keeper_say(keeper->front, keeper->news.line);
}

/* This process itself has failed: a wait ends with a system error, a hold is lost. */
static void give_up(struct keeper *keeper, const char *reason)
{
	const bool waits = keeper->state == KEEPER_TAKES;

	keeper_end_holder(keeper, HOLD_ABANDONED, reason);
	if (waits)
		keeper->verdict = EXIT_SYSTEM;
}

/* Tell WORD, ID and REST to the call that waits, and keep it for the next one. */
static void tell_news(struct keeper *keeper, const char *word, const char *id, const char *rest)
{
	const size_t size = strlen(word) + strlen(id) + strlen(rest) + 1;

	free(keeper->news.line);
	keeper->news.line = malloc(size);
	if (keeper->news.line == NULL) {
		give_up(keeper, "no memory");
		return;
	}
	snprintf(keeper->news.line, size, "%s%s%s", word, id, rest);
	say_news(keeper);
}

/* The lock is held: LINE is "OK", and what follows. */
static void note_taken(struct keeper *keeper, const char *line)
{
	if (keeper->state != KEEPER_TAKES)
		return;
	keeper->state = keeper->known ? KEEPER_HOLDS : KEEPER_OFFERS;
	keeper->patience = deadline_after(PATIENCE);
	tell_news(keeper, "OK id=", keeper->id, line + strlen("OK"));
	if (keeper->known)
		keeper_close(&keeper->front);
}

/* The holder has written a line, or has ended. */
static void hear_holder(struct keeper *keeper)
{
	struct keeper_news *news = &keeper->news;
	char *next = news->begun, *end;
	ssize_t got;

	UNINTERRUPTED(got, read(keeper->output, news->begun + news->length,
			       sizeof news->begun - 1 - news->length));
	if (got < 0) /* it lives, and would be waited for without an end */
		give_up(keeper, "what holds it cannot be read");
	if (got < 0)
		return;
	if (got == 0) {
		if (!keeper_holder_ended(keeper))
			_exit(EXIT_SUCCESS);
		return;
	}
	news->begun[news->length + (size_t)got] = '\0';
	for (; (end = strchr(next, '\n')) != NULL; next = end + 1) {
		*end = '\0';
		if (strncmp(next, "OK", 2) == 0) {
			note_taken(keeper, next);
			continue;
		}
		tell_news(keeper, next, "", "");
	}
	/* Many lines were there, after a stop of this process: the rest of the last one follows. */
	news->length = strlen(next);
	memmove(news->begun, next, news->length + 1);
}

/* The first call has printed OK or WAITING: the caller knows the ID. */
static void let_front_go(struct keeper *keeper)
{
	CRASH_POINT("detach.acknowledged");
	keeper_say(keeper->front, KEEPER_KNOWN);
	CRASH_POINT("detach.held");
	keeper->known = true;
	if (keeper->state == KEEPER_OFFERS)
		keeper->state = KEEPER_HOLDS;
	keeper_close(&keeper->front);
}

/* The lock came to a first call that has not said OK since.  If that is stopped, nobody knows of
 * the hold, and nobody may go on for as long: the turn passes (H9). */
static void look_for_front(struct keeper *keeper)
{
	struct procfs_stat stat;

	if (keeper->state != KEEPER_OFFERS || deadline_left(&keeper->patience) > 0)
		return;
	keeper->patience = deadline_after(PATIENCE);
	if (process_numbers_ours() && process_stat(keeper->first, &stat) && stat.state == 'T')
		keeper_end_holder(keeper, HOLD_ABANDONED,
		    "its turn came while this call was stopped, and has passed");
}

/* The front has printed OK, or wants the place to be kept, or has ended without that (H5). */
static void hear_front(struct keeper *keeper)
{
	char message[16], text[HOLD_ID_SIZE + 16];
	ssize_t got;

	UNINTERRUPTED(got, recv(keeper->front, message, sizeof message - 1, MSG_DONTWAIT));
	if (got < 0 && errno == EAGAIN)
		return;
	message[got > 0 ? got : 0] = '\0';
	if (strcmp(message, KEEPER_KEEP) == 0) {
		snprintf(text, sizeof text, KEEPER_WAITING " id=%s", keeper->id);
		if (keeper->state == KEEPER_TAKES) /* else OK is on its way */
			keeper_say(keeper->front, text);
	} else if (strcmp(message, KEEPER_ACK) == 0)
		let_front_go(keeper);
	else if (keeper->known)
		keeper_close(&keeper->front); /* a --resume: the place stays as it was */
	else
		/* a front that could not print waits for the release: it has shut down one
		 * direction */
		keeper_end_holder(keeper, HOLD_ABANDONED, "the call that took it was killed");
}

static bool is_client_of_ours(int client, uid_t *user)
{
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t length = sizeof peer;

	if (getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
		return false;
	*user = geteuid();
	return peer.uid == 0 || peer.uid == *user;
}

static void accept_client(struct keeper *keeper)
{
	int client = accept4(keeper->socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	uid_t user = 0;
	char text[80];

	if (client < 0)
		return;
	if (!is_client_of_ours(client, &user)) {
		snprintf(text, sizeof text, "this hold belongs to user %lu", (unsigned long)user);
		keeper_reply(&client, EXIT_NOTPERMITTED, text);
		return;
	}
	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		if (keeper->clients[i] < 0) {
			keeper->clients[i] = client;
			return;
		}
	keeper_reply(&client, EXIT_UNAVAILABLE, "too many calls ask for this hold at once");
}

/* The holder is told to end, and CLIENT is answered when it has (H7). */
static void release(struct keeper *keeper, int *client)
{
	if (keeper->state == KEEPER_REMEMBERS) {
		/* the next call is not to connect: it would be cut off without an answer */
		keeper_close(&keeper->socket);
		keeper_reply(client, keeper->verdict, keeper->reason);
		_exit(EXIT_SUCCESS);
	}
	if (keeper->state == KEEPER_ENDS)
		return; /* is answered at the end */
	CRASH_POINT("detach.releasing");
	keeper->releaser = *client;
	keeper_end_holder(keeper, HOLD_RELEASED,
	    keeper->state == KEEPER_TAKES ? "the place in the queue is given up; nothing was held"
					  : "");
}

/* Of the calls that wait, one alone may be told OK. */
static void resume(struct keeper *keeper, int *client)
{
	switch (keeper->state) {
	case KEEPER_TAKES:
	case KEEPER_OFFERS:
		if (keeper->front >= 0) {
			keeper_reply(client, EXIT_UNAVAILABLE, "another call waits with this ID");
			return;
		}
		keeper->front = *client;
		*client = -1;
		if (keeper->news.line != NULL)
			keeper_say(keeper->front, keeper->news.line);
		return;
	case KEEPER_HOLDS:
		keeper_say(*client, keeper->news.line);
		keeper_close(client);
		return;
	case KEEPER_ENDS: /* is answered at the end */
		return;
	case KEEPER_REMEMBERS:
		keeper_reply(client, keeper->verdict, keeper->reason);
	}
}

/* A waiter asks whether it would wait for itself. */
static void tell_owner(const struct keeper *keeper, int *client, const char *question)
{
	const size_t length = strlen(keeper->method);
	char text[32] = "";

	if (keeper->state == KEEPER_HOLDS && keeper->owner.pid > 0 && length > 0 &&
	    strncmp(question, keeper->method, length) == 0 && question[length] == ' ' &&
	    hold_names_have(&keeper->names, question + length + 1))
		snprintf(text, sizeof text, "%ld", (long)keeper->owner.pid);
	keeper_reply(client, text[0] == '\0' ? EXIT_UNAVAILABLE : EXIT_SUCCESS, text);
}

/* CLIENT has asked for something with the words of MESSAGE. */
static void serve_client(struct keeper *keeper, int *client, char *message)
{
	char text[PATH_MAX + 32];
	char *lock = strchr(message, ' ');
	bool releases, resumes;

	if (lock != NULL)
		*lock++ = '\0';
	releases = lock != NULL && strcmp(message, KEEPER_RELEASE) == 0;
	resumes = lock != NULL && strcmp(message, KEEPER_RESUME) == 0;
	if (lock != NULL && strcmp(message, KEEPER_OWNER) == 0)
		tell_owner(keeper, client, lock);
	else if (!releases && !resumes)
		keeper_reply(client, EXIT_UNAVAILABLE, "the hold is of another version of semlock");
	else if (!hold_names_have(&keeper->names, lock)) {
		snprintf(text, sizeof text, "this is the ID of another lock: %.200s",
		    keeper->names.list[0]);
		keeper_reply(client, EXIT_USAGE, text);
	} else if (releases)
		release(keeper, client);
	else
		resume(keeper, client);
}

static void hear_client(struct keeper *keeper, int *client)
{
	char message[KEEPER_MESSAGE + 1];
	ssize_t got;

	UNINTERRUPTED(got, recv(*client, message, KEEPER_MESSAGE, MSG_DONTWAIT));
	if (got < 0 && errno == EAGAIN)
		return;
	if (got <= 0) {
		if (keeper->releaser == *client)
			keeper->releaser = -1;
		keeper_close(client);
		return;
	}
	message[got] = '\0';
	serve_client(keeper, client, message);
}

/* The front has gone, and the events of --status-fd with it. */
static void discard(int *from)
{
	char bytes[512];
	ssize_t got;

	UNINTERRUPTED(got, read(*from, bytes, sizeof bytes));
	if (got == 0 || (got < 0 && errno != EAGAIN))
		keeper_close(from);
}

/* ---- the loop ---- */

enum { ON_OUTPUT, ON_FRONT, ON_OWNER, ON_SOCKET, ON_ERRORS, ON_EVENTS, ON_CLIENTS };

static void leave_caller(void)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = STDIN_FILENO; nothing >= 0 && fd <= STDERR_FILENO; fd++)
		if (dup2(nothing, fd) < 0)
			close(fd); /* of the caller's nothing stays open */
	if (nothing > STDERR_FILENO)
		close(nothing);
	/* Where it fails, the caller's directory stays in use, and that is all. */
	if (chdir("/") != 0)
		return;
}

/* For how many ms poll(2) may sleep; -1: without an end. */
static int longest_sleep(const struct keeper *keeper)
{
	const int look = hold_owner_poll_time(&keeper->owner);
	int front;

	if (keeper->state != KEEPER_OFFERS)
		return look;
	front = deadline_poll_time(&keeper->patience);
	return look >= 0 && look < front ? look : front;
}

static void sleep_until_event(const struct keeper *keeper, struct pollfd *events)
{
	const bool ends = keeper->state == KEEPER_ENDS;
	/* a --resume does not read what the holder says */
	const bool alone = keeper->front < 0 || keeper->known || ends;

	events[ON_OUTPUT] = (struct pollfd){keeper->output, POLLIN, 0};
	events[ON_FRONT] = (struct pollfd){ends ? -1 : keeper->front, POLLIN, 0};
	if (keeper->news.owed)
		events[ON_FRONT].events |= POLLOUT;
	events[ON_OWNER] = (struct pollfd){ends ? -1 : keeper->owner.end, POLLIN, 0};
	events[ON_SOCKET] = (struct pollfd){keeper->socket, POLLIN, 0};
	events[ON_ERRORS] = (struct pollfd){alone ? keeper->errors : -1, POLLIN, 0};
	events[ON_EVENTS] = (struct pollfd){alone ? keeper->events : -1, POLLIN, 0};
	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		events[ON_CLIENTS + i] = (struct pollfd){keeper->clients[i], POLLIN, 0};
	if (poll(events, ON_CLIENTS + KEEPER_CLIENTS, longest_sleep(keeper)) < 0)
		for (size_t i = 0; i < ON_CLIENTS + KEEPER_CLIENTS; i++)
			events[i].revents = 0;
}

noreturn void keeper_serve(struct keeper *keeper)
{
	struct pollfd events[ON_CLIENTS + KEEPER_CLIENTS];

	leave_caller();
	for (;;) {
		sleep_until_event(keeper, events);
		if (events[ON_FRONT].revents != 0)
			hear_front(keeper);
		if (keeper->news.owed && (events[ON_FRONT].revents & POLLOUT) != 0)
			say_news(keeper);
		if (events[ON_OUTPUT].revents != 0)
			hear_holder(keeper);
		if (hold_owner_ended(&keeper->owner) && keeper->state == KEEPER_REMEMBERS)
			_exit(EXIT_SUCCESS);
		if (hold_owner_ended(&keeper->owner)) /* H6 */
			keeper_end_holder(keeper, HOLD_ORPHANED,
			    "the process that it was for has ended");
		look_for_front(keeper);
		if (events[ON_SOCKET].revents != 0)
			accept_client(keeper);
		if (events[ON_ERRORS].revents != 0)
			keeper_read_errors(keeper);
		if (events[ON_EVENTS].revents != 0)
			discard(&keeper->events);
		for (size_t i = 0; i < KEEPER_CLIENTS; i++)
			if (events[ON_CLIENTS + i].revents != 0 && keeper->clients[i] >= 0)
				hear_client(keeper, &keeper->clients[i]);
	}
}
