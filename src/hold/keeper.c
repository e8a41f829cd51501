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
#include <sys/wait.h>
#include <unistd.h>

#include "report/text.h"
#include "hold/keeper.h"
#include "sys/crash_points.h"
#include "sys/files.h"
#include "sys/listeners.h"
#include "sys/process.h"

/* How long a lock is kept for a first call that is stopped before it prints OK.  In a queue, other
 * waiters pass a stopped waiter within that time, too.  In a test, the fault makes it longer: the
 * machine may be slow. */
#define PATIENCE (FAULT_POINT("detach.patience") ? 600 * SECOND : 5 * SECOND)

/* How often the calls that wait for the holder's end are told that the keeper is alive. */
#define SIGN_OF_LIFE (10 * SECOND)

/* How long the end of a hold is remembered.  In a test, the fault makes it shorter. */
#define MEMORY (FAULT_POINT("detach.memory") ? SECOND / 10 : 600 * SECOND)

/* ---- messages ---- */

/* Close *FD, unless it is -1, and set it to -1. */
static void drop(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int keeper_say(int to, const char *text)
{
	/* iov_base is not const, but sendmsg(2) writes nothing there */
	union {
		const char *from;
		void *base;
	} bytes = {text};
	struct iovec packet = {bytes.base, strlen(text)};
	struct msghdr message = {.msg_iov = &packet, .msg_iovlen = 1};
	ssize_t sent = -1;

	if (to < 0)
		return 0;
	/* Use sendmsg(2), because some sandboxes refuse send(2).  Where a sandbox forbids the
	 * keeper to listen, the keeper must still be able to report that. */
	UNINTERRUPTED(sent, sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT));
	return sent < 0 ? -1 : 0;
}

ssize_t keeper_hear(int from, char message[KEEPER_MESSAGE + 1], int flags)
{
	ssize_t got;

	UNINTERRUPTED(got, recv(from, message, KEEPER_MESSAGE, flags | MSG_TRUNC));
	/* ECONNRESET: the other end has closed the connection without reading our question.  If it
	 * sent an answer, the next recv(2) returns that. */
	if (got < 0 && errno == ECONNRESET)
		UNINTERRUPTED(got, recv(from, message, KEEPER_MESSAGE, flags | MSG_TRUNC));
	if (got > KEEPER_MESSAGE) {
		errno = EMSGSIZE;
		got = -1;
	}
	message[got > 0 ? got : 0] = '\0';
	return got;
}

void keeper_reply(int *client, int status, const char *text)
{
	char message[256];

	snprintf(message, sizeof message, "%d %s", status, text);
	keeper_say(*client, message);
	drop(client);
}

/* Does the call that waits read its socket?  If it is stopped, it does not, and a long wait would
 * fill the socket with news.  poll(2) reports POLLOUT only until a quarter of the socket is full:
 * leave news out then, and keep the rest of the room for OK and for the answer. */
static bool front_reads(const struct keeper *keeper)
{
	struct pollfd front = {keeper->front, POLLOUT, 0};

	return keeper->front >= 0 && poll_until(&front, 1, deadline_after(0)) == 1 &&
	       (front.revents & POLLOUT) != 0;
}

/* The holder has said TEXT: pass it on to the first call, while that waits for the lock. */
static void pass_on(const struct keeper *keeper, const char *text)
{
	if (keeper->state == KEEPER_TAKES && !keeper->known && front_reads(keeper))
		keeper_say(keeper->front, text);
}

/* ---- how a hold ends ---- */

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

/* Tell the holder to end, unless that was done before.  WHY is for the placeholder, and REASON for
 * the calls that wait for the end. */
static void end_holder(struct keeper *keeper, enum hold_end why, const char *reason)
{
	const char word = (char)why;

	if (keeper->state >= KEEPER_ENDS)
		return;
	keeper->state = KEEPER_ENDS;
	keeper->due = deadline_after(SIGN_OF_LIFE);
	keeper->verdict = why == HOLD_RELEASED ? EXIT_SUCCESS : EXIT_LOST;
	snprintf(keeper->reason, sizeof keeper->reason, "%s", reason);
	/* A stopped holder has to run to see the word.  Send SIGCONT before the word: after it, the
	 * holder may be exiting under a tracer, such as a leak checker, and SIGCONT would cancel
	 * the stop that the tracer waits for (ptrace(2)). */
	kill(keeper->holder, SIGCONT);
	CRASH_POINT("detach.ending");
	write_without_sigpipe(keeper->to_holder, &word, 1);
	drop(&keeper->to_holder);
}

/* While the holder waits in a kept place, nobody reads its messages: keep the last line of TEXT,
 * which is the reason if the wait fails. */
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

/* Read what the holder has said on standard error. */
static void read_errors(struct keeper *keeper)
{
	char text[1024] = {KEEPER_TEXT};
	ssize_t got = 1;

	while (keeper->errors >= 0 && got > 0) {
		UNINTERRUPTED(got, read(keeper->errors, text + 1, sizeof text - 2));
		if (got == 0 || (got < 0 && errno != EAGAIN))
			drop(&keeper->errors);
		if (got <= 0)
			return;
		text[got + 1] = '\0';
		pass_on(keeper, text);
		if (keeper->state == KEEPER_TAKES)
			note_last_line(keeper, text + 1);
	}
}

/* The holder has ended by itself, with STATUS, while it waited in a kept place. */
static void note_failure(struct keeper *keeper, int status)
{
	/* a status below EXIT_USAGE is no failure: the lock is busy */
	const bool failed = status >= EXIT_USAGE && status < 128;

	keeper->verdict = failed ? status : EXIT_LOST;
	if (failed && keeper->reason[0] != '\0')
		return;
	snprintf(keeper->reason, sizeof keeper->reason, "%s",
	    status >= 128 ? "the process that waited for the lock was killed"
			  : "the wait for the lock was given up");
}

/* The holder has ended by itself, with STATUS. */
static void note_end(struct keeper *keeper, int status)
{
	const char *reason = "the process that held the lock was killed";

	if (status == EXIT_LOST)
		reason = "the lock was lost while it was held";
	else if (status == EXIT_RUNTIMEOUT)
		reason = "its --run-timeout was over";
	keeper->verdict = EXIT_LOST;
	snprintf(keeper->reason, sizeof keeper->reason, "%s", reason);
}

/* For listeners_each(), with the socket NAME of USER: if the keeper of another hold of our owner
 * listens there, tell that keeper that our hold has ended. */
static bool tell_other_keeper(const char *name, uid_t user, void *context)
{
	const struct keeper *keeper = context;
	struct hold_id id;
	const char *text = hold_id_of_socket(name, &id);
	struct hold_peer peer;
	char message[40];

	if (text == NULL || strcmp(text, keeper->id) == 0 ||
	    id.owner != hold_id_digits(keeper->owner.pid) ||
	    (user != (uid_t)-1 && user != geteuid()) || hold_id_connect(text, &peer) != 0)
		return true;
	snprintf(message, sizeof message, KEEPER_FORGET " %ld", (long)keeper->owner.pid);
	if (peer.user == geteuid())
		keeper_say(peer.connection, message);
	close(peer.connection);
	return true;
}

/* The hold has ended without --release: remember how, and tell the owner's other keepers.  Returns
 * false if there is no owner, or it has exited: then nobody can ask. */
static bool remember(struct keeper *keeper)
{
	if (keeper->owner.pid == 0 || watched_ended(&keeper->owner))
		return false;
	keeper->state = KEEPER_REMEMBERS;
	keeper->due = deadline_after(MEMORY);
	drop(&keeper->to_holder);
	drop(&keeper->from_holder);
	drop(&keeper->errors);
	listeners_each(tell_other_keeper, keeper);
	return true;
}

/* Tell CLIENT how the hold ended, whether or not it has asked yet. */
static void tell_end_to(const struct keeper *keeper, int *client)
{
	if (keeper->verdict == EXIT_SUCCESS && *client != keeper->releaser)
		keeper_reply(client, EXIT_LOST, "another call has released it");
	else
		keeper_reply(client, keeper->verdict, keeper->reason);
}

/* Answer all calls that wait for the holder's end.  The first call gets STATUS, and the reason if
 * the holder was told to end. */
static void tell_end(struct keeper *keeper, int status)
{
	const char *its_end =
	    keeper->verdict == EXIT_SUCCESS ? "another call has released it" : keeper->reason;

	if (keeper->known)
		tell_end_to(keeper, &keeper->front);
	else
		keeper_reply(&keeper->front, status, keeper->state == KEEPER_ENDS ? its_end : "");
	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		tell_end_to(keeper, &keeper->clients[i]);
	keeper->releaser = -1; /* the next call may get the same descriptor */
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

/* Returns the socket of a call that has connected, or -1 with errno set; EAGAIN: none is left.
 * Refuses the calls of other users, and goes on to the next. */
static int accept_call(const struct keeper *keeper)
{
	uid_t user = 0;
	char text[80];
	int client;

	while ((client = accept4(keeper->socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		if (is_client_of_ours(client, &user))
			return client;
		snprintf(text, sizeof text, "this hold belongs to user %lu", (unsigned long)user);
		keeper_reply(&client, EXIT_NOTPERMITTED, text);
	}
	return -1;
}

/* Exit, after all else is done.  From shutdown(2) on, connect(2) is refused; answer the calls that
 * have connected before that. */
static noreturn void leave(struct keeper *keeper)
{
	int client;

	shutdown(keeper->socket, SHUT_RD);
	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		tell_end_to(keeper, &keeper->clients[i]);
	while ((client = accept_call(keeper)) >= 0)
		tell_end_to(keeper, &client);
	_exit(EXIT_SUCCESS);
}

/* Is the lock held, or was it? */
static bool has_held(const struct keeper *keeper)
{
	return keeper->news.line != NULL && text_after_word(keeper->news.line, KEEPER_OK) != NULL;
}

/* The holder has ended with STATUS: decide how the hold has ended.  ASKED: the holder was told to
 * end.  Returns the status for the first call, if that still waits. */
static int judge_end(struct keeper *keeper, bool asked, int status)
{
	const bool told = hold_end_text(status) != NULL;
	/* was the placeholder killed before it read why to end?  (A STATUS after a mere wait never
	 * says why.) */
	const bool killed = keeper->verdict == EXIT_SUCCESS && !told && has_held(keeper);

	if (!asked || status == EXIT_LOST || killed)
		note_end(keeper, status);
	if (keeper->verdict == EXIT_SYSTEM) /* the keeper failed while the holder waited */
		return EXIT_SYSTEM;
	/* if TOLD, STATUS only says why the placeholder ended */
	return told ? EXIT_LOST : status;
}

/* The holder has ended, or is about to: wait for that, and tell all calls that wait for it.
 * Returns only if the end is to be remembered. */
static void holder_ended(struct keeper *keeper)
{
	const bool asked = keeper->state == KEEPER_ENDS;
	int ended = EXIT_SYSTEM << 8, status;
	pid_t waited;

	/* answer no call before the holder has ended: until then, no other process can take the
	 * lock (step H8 of tests/models) */
	UNINTERRUPTED(waited, waitpid(keeper->holder, &ended, 0));
	status = WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
	CRASH_POINT("detach.released");
	if (keeper->known && !asked && !has_held(keeper))
		note_failure(keeper, status);
	else
		status = judge_end(keeper, asked, status);
	if (waited < 0 && !asked) {
		keeper->state = KEEPER_ENDS;
		snprintf(keeper->reason, sizeof keeper->reason,
		    "how the holding process has ended cannot be seen: waitpid(2) is refused");
	}
	/* From now on connect(2) is refused, from which a call concludes that no such hold exists.
	 * Do this before the answers: once one call knows of the end, all others can know. */
	if (asked || !keeper->known)
		shutdown(keeper->socket, SHUT_RD);
	tell_end(keeper, status);
	if (asked || !keeper->known || !remember(keeper))
		leave(keeper);
}

/* ---- events ---- */

/* This process itself has failed: end the holder.  A wait then ends with a system error; a lock
 * that was held is lost. */
static void give_up(struct keeper *keeper, const char *reason)
{
	const bool waits = keeper->state == KEEPER_TAKES;

	end_holder(keeper, HOLD_ABANDONED, reason);
	if (waits)
		keeper->verdict = EXIT_SYSTEM;
}

/* The function NAME has failed in this process, and will fail again: so this process cannot see any
 * more what happens.  End the holder, wait only for its end, and exit. */
static noreturn void end_unseen(struct keeper *keeper, const char *name)
{
	char reason[sizeof keeper->reason];

	if (keeper->state != KEEPER_REMEMBERS) {
		snprintf(reason, sizeof reason, "%s failed in the process that keeps it: %s", name,
		    strerror(errno));
		give_up(keeper, reason);
		/* a holder that writes must not wait for this process to read */
		drop(&keeper->from_holder);
		drop(&keeper->errors);
		drop(&keeper->owner.pidfd);
		holder_ended(keeper);
	}
	leave(keeper);
}

/* Send LINE to the call that waits, and keep it for the next call. */
static void tell_news(struct keeper *keeper, const char *line)
{
	const bool is_ok = keeper->state != KEEPER_TAKES;

	free(keeper->news.line);
	keeper->news.line = strdup(line);
	if (keeper->news.line == NULL)
		give_up(keeper, "out of memory");
	else if ((is_ok || front_reads(keeper)) && keeper_say(keeper->front, line) != 0 && is_ok &&
		 errno != EPIPE && errno != ECONNRESET) /* hear_front() handles these two */
		give_up(keeper, "the call that took it cannot be told");
}

/* The lock is held: LINE is "OK id=ID", and what follows. */
static void note_taken(struct keeper *keeper, const char *line)
{
	if (keeper->state != KEEPER_TAKES)
		return;
	keeper->state = KEEPER_HOLDS;
	keeper->due = deadline_after(PATIENCE);
	tell_news(keeper, line);
	if (keeper->known)
		drop(&keeper->front);
}

/* Make room for more of the holder's line, which has no limit here.  Returns 0, or -1 with errno
 * set. */
static int make_room(struct keeper_news *news)
{
	const size_t size = news->size == 0 ? 256 : 2 * news->size;
	char *larger;

	if (news->length + 1 < news->size)
		return 0;
	larger = realloc(news->next, size);
	if (larger == NULL)
		return -1;
	news->next = larger;
	news->size = size;
	return 0;
}

/* The holder has written a line, or has ended. */
static void hear_holder(struct keeper *keeper)
{
	struct keeper_news *news = &keeper->news;
	char *next, *end;
	ssize_t got;

	if (make_room(news) != 0)
		end_unseen(keeper, "malloc(3)");
	UNINTERRUPTED(got,
	    read(keeper->from_holder, news->next + news->length, news->size - 1 - news->length));
	/* do not take this for the holder's end: it is still alive, so waiting for it would never
	 * end */
	if (got < 0)
		end_unseen(keeper, "read(2)");
	read_errors(keeper); /* first, pass on what the holder wrote on standard error */
	if (got == 0) {
		holder_ended(keeper);
		return;
	}
	next = news->next;
	next[news->length + (size_t)got] = '\0';
	for (; (end = strchr(next, '\n')) != NULL; next = end + 1) {
		*end = '\0';
		if (text_after_word(next, KEEPER_OK) != NULL)
			note_taken(keeper, next);
		else if (text_after_word(next, KEEPER_WAITS) != NULL)
			tell_news(keeper, next);
		else
			pass_on(keeper, next);
	}
	/* If this process was stopped, it may read many lines at once.  Keep the last one, if its
	 * end has not come yet. */
	news->length = strlen(next);
	memmove(news->next, next, news->length + 1);
}

/* The first call has printed OK or WAITING: the caller knows the ID. */
static void let_front_go(struct keeper *keeper)
{
	CRASH_POINT("detach.acknowledged");
	keeper_reply(&keeper->front, EXIT_SUCCESS, "");
	CRASH_POINT("detach.held");
	keeper->known = true;
	keeper->due = deadline_never();
}

/* The lock is held, but the first call has not acknowledged OK for a while.  If that call is
 * stopped, nobody knows of the hold, and all waiters would wait until the call continues: end the
 * hold, so that the turn passes (step H9 of tests/models). */
static void look_for_front(struct keeper *keeper)
{
	if (keeper->known)
		return;
	keeper->due = deadline_after(PATIENCE);
	if (process_stopped(keeper->first))
		end_holder(keeper, HOLD_ABANDONED,
		    "its turn came while this call was stopped, and has passed");
}

/* The front has printed OK or WAITING, or has ended without that (step H5 of tests/models). */
static void hear_front(struct keeper *keeper)
{
	char message[KEEPER_MESSAGE + 1];

	if (keeper_hear(keeper->front, message, MSG_DONTWAIT) < 0 && errno == EAGAIN)
		return;
	if (strcmp(message, KEEPER_ACK) == 0)
		let_front_go(keeper);
	else if (keeper->known)
		drop(&keeper->front); /* a --resume has ended: the place stays as it was */
	else
		/* the front was killed; or it could not print OK: then it has shut down its sending
		 * side, and waits for the release */
		end_holder(keeper, HOLD_ABANDONED,
		    "the call that took it ended before the caller knew");
}

/* May accept4(2) succeed later, after ERRNUM? */
static bool may_accept_later(int errnum)
{
	return errnum != EPERM && errnum != EACCES && errnum != ENOSYS && errnum != EINVAL;
}

/* A call that cannot be accepted, for lack of descriptors for instance, would wake this process
 * again and again: so accept none for a second.  Where accept4(2) is refused for good, no call
 * could release the lock: end the hold. */
static void accept_client(struct keeper *keeper)
{
	int client = accept_call(keeper);

	keeper->deaf = deadline_never();
	if (client < 0 && !may_accept_later(errno))
		end_unseen(keeper, "accept4(2)");
	if (client < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		keeper->deaf = deadline_after(SECOND);
	if (client < 0)
		return;
	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		if (keeper->clients[i] < 0) {
			keeper->clients[i] = client;
			return;
		}
	keeper_reply(&client, EXIT_UNAVAILABLE, "too many calls ask for this hold at once");
}

/* Tell the holder to end.  CLIENT gets its answer when the holder has ended (step H7 of
 * tests/models). */
static void keeper_release(struct keeper *keeper, int *client)
{
	if (keeper->state == KEEPER_REMEMBERS)
		leave(keeper);
	if (keeper->state != KEEPER_ENDS) {
		CRASH_POINT("detach.releasing");
		keeper->releaser = *client;
		end_holder(keeper, HOLD_RELEASED,
		    keeper->state == KEEPER_TAKES
			? "the place in the queue is given up; nothing was held"
			: "");
	}
	keeper_say(*client, KEEPER_ENDING); /* the answer comes when the holder has ended */
}

/* --resume: let CLIENT wait for OK, unless another call does: only one may wait at a time. */
static void resume(struct keeper *keeper, int *client)
{
	switch (keeper->state) {
	case KEEPER_TAKES:
	case KEEPER_HOLDS:
		if (keeper->front >= 0) {
			keeper_reply(client, EXIT_UNAVAILABLE, "another call waits with this ID");
			return;
		}
		keeper_say(*client, keeper->news.line != NULL ? keeper->news.line : KEEPER_ID);
		if (keeper->state == KEEPER_HOLDS) {
			drop(client);
			return;
		}
		keeper->front = *client;
		*client = -1;
		return;
	case KEEPER_ENDS: /* the answer comes when the holder has ended */
		keeper_say(*client, KEEPER_ENDING);
		return;
	case KEEPER_REMEMBERS:
		keeper_reply(client, keeper->verdict, keeper->reason);
	}
}

/* Another hold of the owner OWNER has ended. */
static void forget(struct keeper *keeper, int *client, const char *owner)
{
	drop(client);
	if (keeper->state == KEEPER_REMEMBERS && strtol(owner, NULL, 10) == keeper->owner.pid &&
	    ++keeper->later >= KEEPER_MEMORIES)
		leave(keeper);
}

/* A waiter asks for the owner of the lock that QUESTION names.  If the waiter descends from the
 * owner, it would wait for itself. */
static void tell_owner(const struct keeper *keeper, int *client, const char *question)
{
	const size_t length = strlen(keeper->method);
	char text[32] = "";

	if (keeper->state == KEEPER_HOLDS && keeper->known && keeper->owner.pid > 0 && length > 0 &&
	    strncmp(question, keeper->method, length) == 0 && question[length] == ' ' &&
	    hold_names_have(&keeper->names, question + length + 1))
		snprintf(text, sizeof text, "%ld", (long)keeper->owner.pid);
	keeper_reply(client, text[0] == '\0' ? EXIT_UNAVAILABLE : EXIT_SUCCESS, text);
}

/* Do what CLIENT asks for in MESSAGE. */
static void serve_client(struct keeper *keeper, int *client, char *message)
{
	char text[240];
	char *lock = strchr(message, ' ');
	bool releases, resumes;

	if (lock != NULL)
		*lock++ = '\0';
	releases = lock != NULL && strcmp(message, KEEPER_RELEASE) == 0;
	resumes = lock != NULL && strcmp(message, KEEPER_RESUME) == 0;
	if (lock != NULL && strcmp(message, KEEPER_OWNER) == 0)
		tell_owner(keeper, client, lock);
	else if (lock != NULL && strcmp(message, KEEPER_FORGET) == 0)
		forget(keeper, client, lock);
	else if (!releases && !resumes)
		keeper_reply(client, EXIT_UNAVAILABLE, "the hold is of another version of semlock");
	else if (!hold_names_have(&keeper->names, lock)) {
		snprintf(text, sizeof text, "this is the ID of another lock: %.200s",
		    keeper->names.list[0]);
		keeper_reply(client, EXIT_USAGE, text);
	} else if (releases)
		keeper_release(keeper, client);
	else
		resume(keeper, client);
}

static void hear_client(struct keeper *keeper, int *client)
{
	char message[KEEPER_MESSAGE + 1];
	const ssize_t got = keeper_hear(*client, message, MSG_DONTWAIT);

	if (got < 0 && errno == EAGAIN)
		return;
	if (got <= 0) {
		if (keeper->releaser == *client)
			keeper->releaser = -1;
		drop(client);
		return;
	}
	serve_client(keeper, client, message);
}

/* ---- the loop ---- */

enum { ON_OUTPUT, ON_FRONT, ON_OWNER, ON_SOCKET, ON_ERRORS, ON_CLIENTS };

static void leave_caller(void)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = STDIN_FILENO; nothing >= 0 && fd <= STDERR_FILENO; fd++)
		if (dup2(nothing, fd) < 0)
			close(fd); /* nothing of the caller's stays open */
	if (nothing > STDERR_FILENO)
		close(nothing);
	/* If chdir(2) fails, the caller's directory stays in use, and that is all. */
	if (chdir("/") != 0)
		return;
}

/* Until when poll(2) may sleep. */
static struct deadline next_look(const struct keeper *keeper)
{
	const struct deadline own = deadline_earlier(keeper->due, keeper->deaf);

	return deadline_earlier(own, watched_next_look(&keeper->owner));
}

/* Returns -1 with errno set if poll(2) fails. */
static int sleep_until_event(const struct keeper *keeper, struct pollfd *events)
{
	const bool ends = keeper->state == KEEPER_ENDS;

	events[ON_OUTPUT] = (struct pollfd){keeper->from_holder, POLLIN, 0};
	events[ON_FRONT] = (struct pollfd){ends ? -1 : keeper->front, POLLIN, 0};
	events[ON_OWNER] = (struct pollfd){ends ? -1 : keeper->owner.pidfd, POLLIN, 0};
	events[ON_SOCKET] = (struct pollfd){keeper->deaf.never ? keeper->socket : -1, POLLIN, 0};
	events[ON_ERRORS] = (struct pollfd){keeper->errors, POLLIN, 0};
	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		events[ON_CLIENTS + i] = (struct pollfd){keeper->clients[i], POLLIN, 0};
	return poll_until(events, ON_CLIENTS + KEEPER_CLIENTS, next_look(keeper));
}

/* KEEPER->due has come: do what it was set for in this state. */
static void do_what_is_due(struct keeper *keeper)
{
	keeper->due = deadline_never();
	switch (keeper->state) {
	case KEEPER_TAKES:
		return;
	case KEEPER_HOLDS:
		look_for_front(keeper);
		return;
	case KEEPER_ENDS:
		for (size_t i = 0; i < KEEPER_CLIENTS; i++)
			keeper_say(keeper->clients[i], KEEPER_ENDING);
		keeper->due = deadline_after(SIGN_OF_LIFE);
		return;
	case KEEPER_REMEMBERS:
		leave(keeper);
	}
}

/* Here standard error is still the one that the caller gave to the front. */
noreturn void keeper_fail(struct keeper *keeper, const struct error *error)
{
	complain("--detach: %s", error->text);
	keeper_reply(&keeper->front, exit_status_of(error->kind), "");
	_exit(EXIT_SUCCESS);
}

noreturn void keeper_serve(struct keeper *keeper)
{
	struct pollfd events[ON_CLIENTS + KEEPER_CLIENTS];

	leave_caller();
	for (;;) {
		if (sleep_until_event(keeper, events) < 0)
			end_unseen(keeper, "poll(2)");
		if (events[ON_FRONT].revents != 0)
			hear_front(keeper);
		if (events[ON_OUTPUT].revents != 0)
			hear_holder(keeper);
		if (watched_ended(&keeper->owner) && keeper->state == KEEPER_REMEMBERS)
			leave(keeper);
		if (watched_ended(&keeper->owner)) /* step H6 of tests/models */
			end_holder(keeper, HOLD_ORPHANED, "the process that it was for has ended");
		if (deadline_left(&keeper->due) == 0)
			do_what_is_due(keeper);
		if (events[ON_SOCKET].revents != 0 || deadline_left(&keeper->deaf) == 0)
			accept_client(keeper);
		if (events[ON_ERRORS].revents != 0)
			read_errors(keeper);
		for (size_t i = 0; i < KEEPER_CLIENTS; i++)
			if (events[ON_CLIENTS + i].revents != 0 && keeper->clients[i] >= 0)
				hear_client(keeper, &keeper->clients[i]);
	}
}
