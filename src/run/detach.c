/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/status_fd.h"
#include "run/detach.h"
#include "run/keeper.h"
#include "run/observer.h"
#include "run/outcome.h"
#include "sys/crash_points.h"
#include "sys/files.h"
#include "sys/memory.h"
#include "sys/process.h"

/* The locks are released from another directory: a name that begins without a slash becomes an
 * absolute one.  Returns 0, or -1 with ERROR filled. */
static int make_names_absolute(const struct request *request, struct error *error)
{
	char here[PATH_MAX];
	size_t length;
	char *name;

	for (unsigned i = 0; request->spec.method->family != ON_SERVER && i < request->nlocks;
	     i++) {
		if (request->locks[i].name[0] == '/')
			continue;
		if (getcwd(here, sizeof here) == NULL)
			return error_set(error, ERROR_SYSTEM, "cannot name the present directory");
		length = strlen(here) + 1 + strlen(request->locks[i].name) + 1;
		name = memory_lasting(length);
		if (name == NULL)
			return error_plain(error, ERROR_SYSTEM, "no memory");
		snprintf(name, length, "%s/%s", here, request->locks[i].name);
		request->locks[i].name = name;
	}
	return 0;
}

/* ---- three processes ---- */

/* What is made before the keeper is forked. */
struct channels {
	int front[2]; /* messages: the front has [0], the keeper [1] */
	int errors[2], events[2];
};

static int make_channels(struct channels *channels, struct error *error)
{
	int *const all[] = {channels->errors, channels->events};

	*channels = (struct channels){{-1, -1}, {-1, -1}, {-1, -1}};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channels->front) != 0)
		return error_set(error, ERROR_SYSTEM, "cannot make a pair of sockets");
	for (size_t i = 0; i < 2; i++) {
		channels->front[i] = descriptor_above_standard(channels->front[i]);
		if (channels->front[i] < 0)
			return error_set(error, ERROR_SYSTEM, "cannot make a pair of sockets");
	}
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		if (all[i] == channels->events && status_fd < 0)
			continue;
		if (descriptor_pipe(all[i]) != 0)
			return error_set(error, ERROR_SYSTEM, "cannot make a pipe");
		/* the front empties it at its end, and must not wait for more */
		fcntl(all[i][0], F_SETFL, O_NONBLOCK);
	}
	return 0;
}

/* In the holder: semlock --hold from here on, with INPUT and OUTPUT of the keeper's. */
static void become_holder(struct detachment *detachment, const struct channels *channels, int input,
    int output)
{
	const bool terminal = isatty(STDERR_FILENO);

	dup2(input, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(channels->errors[1], STDERR_FILENO);
	close(input);
	close(output);
	if (terminal)
		report_to_terminal();
	close(channels->errors[0]);
	close(channels->errors[1]);
	close(channels->front[1]);
	if (channels->events[0] >= 0) {
		close(channels->events[0]);
		status_fd = channels->events[1];
	}
	detachment->is_front = false;
}

/* In the keeper's process: fork the holder.  Returns 0 in the holder, or -1 with ERROR filled, also
 * there; the keeper does not return, unless it fails. */
static int split_off(struct detachment *detachment, const struct channels *channels,
    struct keeper *keeper, struct error *error)
{
	int input[2], output[2];

	setsid();
	close(channels->front[0]);
	if (keeper_listen(keeper, error) != 0)
		return -1;
	if (descriptor_pipe(input) != 0 || descriptor_pipe(output) != 0)
		return error_set(error, ERROR_SYSTEM, "cannot make a pipe");
	CRASH_POINT("detach.keeper");
	keeper->holder = fork();
	if (keeper->holder < 0)
		return error_set(error, ERROR_SYSTEM, "cannot start a process");
	if (keeper->holder == 0) {
		close(input[1]);
		close(output[0]);
		close(keeper->socket);
		if (keeper->owner_end >= 0)
			close(keeper->owner_end);
		become_holder(detachment, channels, input[0], output[1]);
		return 0;
	}
	close(input[0]);
	close(output[1]);
	close(channels->errors[1]);
	if (channels->events[1] >= 0)
		close(channels->events[1]);
	caller_fds_close(&detachment->caller);
	keeper->input = input[1];
	keeper->output = output[0];
	keeper_serve(keeper);
}

int detach_leave(struct detachment *detachment, const struct request *request,
    const struct lock *locks, struct error *error)
{
	if (make_names_absolute(request, error) != 0)
		return -1;
	caller_leave(&detachment->caller, locks, request->nlocks);
	return 0;
}

int detach_start(struct detachment *detachment, const struct request *request, struct error *error)
{
	struct keeper keeper;
	struct channels channels;
	int status;
	pid_t pid;

	/* first, or what is opened here would be taken for the caller's */
	if (caller_fds_list(&detachment->caller, error) != 0 ||
	    keeper_begin(&keeper, request, error) != 0 || make_channels(&channels, error) != 0)
		return -1;
	pid = fork();
	if (pid < 0)
		return error_set(error, ERROR_SYSTEM, "cannot start a process");
	if (pid == 0) {
		keeper.front = channels.front[1];
		keeper.errors = channels.errors[0];
		keeper.events = channels.events[0];
		status = split_off(detachment, &channels, &keeper, error);
		if (keeper.holder == 0)
			return status;
		keeper_fail(&keeper, error);
	}
	close(channels.front[1]);
	close(channels.errors[1]);
	if (channels.events[1] >= 0)
		close(channels.events[1]);
	detachment->is_front = true;
	detachment->keeper = channels.front[0];
	detachment->errors = channels.errors[0];
	detachment->events = channels.events[0];
	return 0;
}

/* ---- the front ---- */

/* Write what the holder has said on FROM, so far, to TO. */
static void relay(int from, int to)
{
	char bytes[1024];
	ssize_t got;

	while (from >= 0 && (got = read(from, bytes, sizeof bytes)) > 0)
		write_without_sigpipe(to, bytes, (size_t)got);
}

static void relay_all(const struct detachment *detachment)
{
	relay(detachment->errors, STDERR_FILENO);
	relay(detachment->events, status_fd);
}

/* WORDS: the number of a lock, and the holder's PID. */
static void show_wait(const struct request *request, struct show *show, const char *words)
{
	static struct lock lock; /* static: the observer tells one wait from the next by it */
	unsigned i;
	long pid;

	if (sscanf(words, "%u %ld", &i, &pid) != 2 || i >= request->nlocks)
		return;
	lock = LOCK_OF(&request->locks[i]);
	show->asker = (pid_t)pid;
	observer_start(show, &lock);
}

/* The lock is held: say so.  The keeper holds it for the caller once that is acknowledged.  Returns
 * the exit status. */
static int say_ok(const struct detachment *detachment, const struct request *request,
    const char *words)
{
	char line[KEEPER_MESSAGE + 8];
	int length = snprintf(line, sizeof line, "%s\n", words);
	ssize_t put;

	CRASH_POINT("detach.taken");
	UNINTERRUPTED(put, write(STDOUT_FILENO, line, (size_t)length));
	if (put != length) {
		complain("cannot write to standard output, which is to say that the lock is held: "
			 "%s",
		    put < 0 ? strerror(errno) : "no room for the whole line");
		shutdown(detachment->keeper, SHUT_WR);
		while (recv(detachment->keeper, line, sizeof line, 0) > 0)
			;
		return EXIT_SYSTEM;
	}
	CRASH_POINT("detach.said");
	if (send(detachment->keeper, KEEPER_ACK, strlen(KEEPER_ACK), MSG_NOSIGNAL) > 0)
		return EXIT_SUCCESS;
	complain("%s: the process that holds it has been killed", request->label);
	return EXIT_LOST;
}

/* The holder has ended with STATUS, of waitpid(2): end like it. */
static int end_as(int status)
{
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	return outcome_die(&(struct run_outcome){.signal = WTERMSIG(status)},
	    128 + WTERMSIG(status));
}

/* A message from the keeper.  Returns the exit status, or -1: the wait goes on. */
static int obey(const struct detachment *detachment, const struct request *request,
    struct show *show, const char *message)
{
	const size_t waits = strlen(KEEPER_WAITS " "), ended = strlen(KEEPER_ENDED " ");

	if (strncmp(message, KEEPER_WAITS " ", waits) == 0) {
		relay_all(detachment);
		show_wait(request, show, message + waits);
		return -1;
	}
	observer_end();
	relay_all(detachment);
	if (strncmp(message, KEEPER_ENDED " ", ended) == 0)
		return end_as(atoi(message + ended));
	return say_ok(detachment, request, message);
}

int detach_front(const struct detachment *detachment, const struct request *request)
{
	struct show show = show_of(request);
	char message[KEEPER_MESSAGE + 1];
	struct pollfd events[] = {
	    {detachment->keeper, POLLIN, 0},
	    {detachment->errors, POLLIN, 0},
	    {detachment->events, POLLIN, 0},
	};
	int status = -1;
	ssize_t got;

	while (status < 0) {
		if (poll(events, 3, -1) < 0)
			continue; /* a signal: the observer's handler has seen to it */
		for (size_t i = 1; i < 3; i++)
			if ((events[i].revents & POLLIN) == 0 && events[i].revents != 0)
				events[i].fd = -1; /* hung up */
		if (events[0].revents == 0) {
			relay_all(detachment);
			continue;
		}
		UNINTERRUPTED(got, recv(detachment->keeper, message, KEEPER_MESSAGE, 0));
		if (got <= 0) {
			observer_end();
			relay_all(detachment);
			complain("%s: the process that waits for it has been killed",
			    request->label);
			return EXIT_SYSTEM;
		}
		message[got] = '\0';
		status = obey(detachment, request, &show, message);
	}
	return status;
}
