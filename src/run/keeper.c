/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "methods/server/scheme.h"
#include "run/keeper.h"
#include "sys/crash_points.h"
#include "sys/files.h"
#include "sys/process.h"

enum { OWNER_POLL = 1000 }; /* ms between two looks for an owner without a pidfd */

/* ---- it begins ---- */

int keeper_lock_name(const char *name, char text[PATH_MAX + 1], struct error *error)
{
	const char *slash = strrchr(name, '/'), *base = slash == NULL ? name : slash + 1;
	char space[PATH_MAX], real[PATH_MAX];
	const char *directory;
	int length;

	if (server_method(name) != NULL) {
		length = snprintf(text, PATH_MAX + 1, "%s", name);
		return length <= PATH_MAX ? 0
		                          : error_plain(error, ERROR_USAGE, "this URL is too long");
	}
	directory = path_directory(name, space);
	if (directory == NULL || realpath(directory, real) == NULL)
		return error_set(error, ERROR_OPEN, "cannot name its directory");
	length = snprintf(text, PATH_MAX + 1, "%s/%s", strcmp(real, "/") == 0 ? "" : real, base);
	if (length > PATH_MAX)
		return error_plain(error, ERROR_USAGE, "this name is too long");
	return 0;
}

/* Has the owner ended?  Its PID may be another process's by now. */
static bool owner_ended(const struct keeper *keeper)
{
	struct pollfd end = {keeper->owner_end, POLLIN, 0};
	struct procfs_stat stat;

	if (keeper->owner == 0)
		return false;
	if (keeper->owner_end >= 0)
		return poll(&end, 1, 0) > 0;
	if (keeper->owner_started != 0)
		return !process_stat(keeper->owner, &stat) || procfs_ended(stat.state) ||
		       stat.started != keeper->owner_started;
	return kill(keeper->owner, 0) != 0 && errno == ESRCH;
}

int keeper_begin(struct keeper *keeper, const struct request *request, struct error *error)
{
	struct procfs_stat stat;

	*keeper = (struct keeper){
	    .owner = request->owner,
	    .owner_end = -1,
	    .holder = -1,
	    .input = -1,
	    .output = -1,
	    .front = -1,
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
	if (keeper->owner > 0) {
		keeper->owner_end = descriptor_above_standard(pidfd_of(keeper->owner));
		if (process_numbers_ours() && process_stat(keeper->owner, &stat))
			keeper->owner_started = stat.started;
	}
	if (keeper->owner > 0 && (owner_ended(keeper) || kill(keeper->owner, 0) != 0) &&
	    errno != EPERM)
		return error_plain(error, ERROR_USAGE, "--hold=%ld: there is no such process",
		    (long)keeper->owner);
	/* a directory that is not there: the holder says so */
	if (keeper_lock_name(request->locks[0].name, keeper->lock, error) != 0)
		keeper->lock[0] = '\0';
	return 0;
}

int keeper_listen(struct keeper *keeper, struct error *error)
{
	struct sockaddr_un address;
	socklen_t length;

	if (hold_id_make(keeper->id, error) != 0)
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
	int length;

	complain("--detach: %s", error->text);
	length =
	    snprintf(message, sizeof message, KEEPER_ENDED " %d", exit_status_of(error->kind) << 8);
	send(keeper->front, message, (size_t)length, MSG_NOSIGNAL);
	_exit(EXIT_SUCCESS);
}

/* ---- messages ---- */

static void say(int to, const char *text)
{
	send(to, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Answer CLIENT, and close its connection. */
static void answer(int *client, int status, const char *text)
{
	char message[256];

	snprintf(message, sizeof message, "%d %s", status, text);
	say(*client, message);
	close_one(client);
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

/* WHY is for the placeholder.  A stopped holder has to run to see it. */
static void end_holder(struct keeper *keeper, enum hold_end why, const char *reason)
{
	const char word = (char)why;

	if (keeper->state >= KEEPER_ENDS)
		return;
	keeper->state = KEEPER_ENDS;
	keeper->verdict = why == HOLD_RELEASED ? EXIT_SUCCESS : EXIT_LOST;
	snprintf(keeper->reason, sizeof keeper->reason, "%s", reason);
	write_without_sigpipe(keeper->input, &word, 1);
	close_one(&keeper->input);
	kill(keeper->holder, SIGCONT);
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
static void remember_or_exit(struct keeper *keeper)
{
	if (keeper->owner == 0 || owner_ended(keeper))
		_exit(EXIT_SUCCESS);
	keeper->state = KEEPER_REMEMBERS;
	close_one(&keeper->input);
	close_one(&keeper->output);
	close_one(&keeper->errors);
	close_one(&keeper->events);
}

/* The holder has ended, and so the lock is released. */
static void holder_ended(struct keeper *keeper)
{
	const bool asked = keeper->state == KEEPER_ENDS, held = keeper->state == KEEPER_HOLDS;
	char message[32];
	int status = 0;
	bool told;

	while (waitpid(keeper->holder, &status, 0) < 0 && errno == EINTR)
		;
	CRASH_POINT("detach.released");
	/* it may have been killed before it was told to end */
	told = WIFEXITED(status) && hold_end_text(WEXITSTATUS(status)) != NULL;
	if (!asked || (keeper->verdict == EXIT_SUCCESS && !told) ||
	    (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_LOST))
		note_end(keeper, status);
	else if (told)
		status = keeper->verdict << 8; /* the placeholder's own says why it has ended */
	snprintf(message, sizeof message, KEEPER_ENDED " %d", status);
	if (keeper->front >= 0)
		say(keeper->front, message);
	for (size_t i = 0; i < KEEPER_CLIENTS; i++) {
		if (keeper->clients[i] < 0)
			continue;
		if (keeper->verdict == 0 && keeper->clients[i] != keeper->releaser)
			answer(&keeper->clients[i], EXIT_LOST, "another call has released it");
		else
			answer(&keeper->clients[i], keeper->verdict, keeper->reason);
	}
	if (!held)
		_exit(EXIT_SUCCESS);
	remember_or_exit(keeper);
}

/* ---- what comes up ---- */

/* The holder has written a line, or has ended. */
static void hear_holder(struct keeper *keeper)
{
	char line[KEEPER_MESSAGE], text[KEEPER_MESSAGE + HOLD_ID_SIZE + 8];
	ssize_t got;
	char *next, *end;

	UNINTERRUPTED(got, read(keeper->output, line, sizeof line - 1));
	if (got <= 0) {
		holder_ended(keeper);
		return;
	}
	line[got] = '\0';
	/* each line is written at once, and is shorter than what a pipe takes at once */
	for (next = line; (end = strchr(next, '\n')) != NULL; next = end + 1) {
		*end = '\0';
		if (strncmp(next, "OK", 2) != 0) {
			say(keeper->front, next);
			continue;
		}
		if (keeper->state != KEEPER_TAKES)
			continue;
		keeper->state = KEEPER_OFFERS;
		snprintf(text, sizeof text, "OK id=%s%s", keeper->id, next + 2);
		say(keeper->front, text);
	}
}

/* The front has printed OK, or has ended without that. */
static void hear_front(struct keeper *keeper)
{
	char message[16];
	ssize_t got;

	UNINTERRUPTED(got, recv(keeper->front, message, sizeof message, MSG_DONTWAIT));
	if (got < 0 && errno == EAGAIN)
		return;
	if (got > 0 && keeper->state == KEEPER_OFFERS) {
		CRASH_POINT("detach.held");
		keeper->state = KEEPER_HOLDS;
		close_one(&keeper->front);
		return;
	}
	/* a front that could not print waits for the release: it has shut down one direction */
	end_holder(keeper, HOLD_ABANDONED, "the call that took it was killed");
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
		answer(&client, EXIT_NOTPERMITTED, text);
		return;
	}
	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		if (keeper->clients[i] < 0) {
			keeper->clients[i] = client;
			return;
		}
	answer(&client, EXIT_UNAVAILABLE, "too many calls ask for this hold at once");
}

/* Are these two names of one file? */
static bool is_one_file(const char *one, const char *other)
{
	struct stat of_one, of_other;

	return stat(one, &of_one) == 0 && stat(other, &of_other) == 0 &&
	       of_one.st_dev == of_other.st_dev && of_one.st_ino == of_other.st_ino;
}

static bool is_lock(const struct keeper *keeper, const char *name)
{
	return strcmp(name, keeper->lock) == 0 || is_one_file(name, keeper->lock);
}

static void release(struct keeper *keeper, int *client, const char *lock)
{
	char text[PATH_MAX + 32];

	if (!is_lock(keeper, lock)) {
		snprintf(text, sizeof text, "this is the ID of another lock: %.200s", keeper->lock);
		answer(client, EXIT_USAGE, text);
		return;
	}
	if (keeper->state == KEEPER_REMEMBERS) {
		answer(client, keeper->verdict, keeper->reason);
		_exit(EXIT_SUCCESS);
	}
	if (keeper->state == KEEPER_ENDS)
		return; /* is answered at the end */
	CRASH_POINT("detach.releasing");
	keeper->releaser = *client;
	end_holder(keeper, HOLD_RELEASED, "");
}

/* A waiter asks whether it would wait for itself. */
static void tell_owner(const struct keeper *keeper, int *client, const char *question)
{
	const size_t length = strlen(keeper->method);
	char text[32] = "";

	if (keeper->state == KEEPER_HOLDS && keeper->owner > 0 && length > 0 &&
	    strncmp(question, keeper->method, length) == 0 && question[length] == ' ' &&
	    is_lock(keeper, question + length + 1))
		snprintf(text, sizeof text, "%ld", (long)keeper->owner);
	answer(client, text[0] == '\0' ? EXIT_UNAVAILABLE : EXIT_SUCCESS, text);
}

static void hear_client(struct keeper *keeper, int *client)
{
	char message[KEEPER_MESSAGE + 1];
	const size_t word = strlen(KEEPER_RELEASE " "), other = strlen(KEEPER_OWNER " ");
	ssize_t got;

	UNINTERRUPTED(got, recv(*client, message, KEEPER_MESSAGE, MSG_DONTWAIT));
	if (got < 0 && errno == EAGAIN)
		return;
	if (got <= 0) {
		if (keeper->releaser == *client)
			keeper->releaser = -1;
		close_one(client);
		return;
	}
	message[got] = '\0';
	if (strncmp(message, KEEPER_RELEASE " ", word) == 0)
		release(keeper, client, message + word);
	else if (strncmp(message, KEEPER_OWNER " ", other) == 0)
		tell_owner(keeper, client, message + other);
	else
		answer(client, EXIT_UNAVAILABLE, "the hold is of another version of semlock");
}

/* The front has gone: what the holder says is read, so that no helper waits for a reader. */
static void discard(int *from)
{
	char bytes[512];
	ssize_t got;

	UNINTERRUPTED(got, read(*from, bytes, sizeof bytes));
	if (got == 0 || (got < 0 && errno != EAGAIN))
		close_one(from);
}

/* ---- the loop ---- */

enum { ON_OUTPUT, ON_FRONT, ON_OWNER, ON_SOCKET, ON_ERRORS, ON_EVENTS, ON_CLIENTS };

static void leave_caller(void)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = STDIN_FILENO; nothing >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(nothing, fd);
	if (nothing > STDERR_FILENO)
		close(nothing);
	/* Where it fails, the caller's directory stays in use, and that is all. */
	if (chdir("/") != 0)
		return;
}

static void sleep_until_event(const struct keeper *keeper, struct pollfd *events)
{
	const bool ends = keeper->state == KEEPER_ENDS;
	const bool alone = keeper->front < 0 || ends;
	const bool polls = keeper->owner > 0 && keeper->owner_end < 0;

	events[ON_OUTPUT] = (struct pollfd){keeper->output, POLLIN, 0};
	events[ON_FRONT] = (struct pollfd){ends ? -1 : keeper->front, POLLIN, 0};
	events[ON_OWNER] = (struct pollfd){ends ? -1 : keeper->owner_end, POLLIN, 0};
	events[ON_SOCKET] = (struct pollfd){keeper->socket, POLLIN, 0};
	events[ON_ERRORS] = (struct pollfd){alone ? keeper->errors : -1, POLLIN, 0};
	events[ON_EVENTS] = (struct pollfd){alone ? keeper->events : -1, POLLIN, 0};
	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		events[ON_CLIENTS + i] = (struct pollfd){keeper->clients[i], POLLIN, 0};
	if (poll(events, ON_CLIENTS + KEEPER_CLIENTS, polls ? OWNER_POLL : -1) < 0)
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
		if (events[ON_OUTPUT].revents != 0)
			hear_holder(keeper);
		if (owner_ended(keeper) && keeper->state == KEEPER_REMEMBERS)
			_exit(EXIT_SUCCESS);
		if (owner_ended(keeper))
			end_holder(keeper, HOLD_ORPHANED,
			    "the process for which it held has ended");
		if (events[ON_SOCKET].revents != 0)
			accept_client(keeper);
		if (events[ON_ERRORS].revents != 0)
			discard(&keeper->errors);
		if (events[ON_EVENTS].revents != 0)
			discard(&keeper->events);
		for (size_t i = 0; i < KEEPER_CLIENTS; i++)
			if (events[ON_CLIENTS + i].revents != 0 && keeper->clients[i] >= 0)
				hear_client(keeper, &keeper->clients[i]);
	}
}
