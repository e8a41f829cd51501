/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "report/status_fd.h"
#include "hold/detach.h"
#include "hold/keeper.h"
#include "hold/sandbox.h"
#include "sys/crash_points.h"
#include "sys/files.h"
#include "sys/memory.h"
#include "sys/process.h"

static int too_long(struct error *error)
{
	return error_plain(error, ERROR_OPEN,
	    "its name with its directory is too long for a hold in the background: at most %d "
	    "bytes",
	    PATH_MAX - 1);
}

/* Make the names of REQUEST's locks absolute, because this process will release the locks from
 * another directory.  This changes the list that REQUEST points to, which is this process's own.
 * Returns 0, or -1 with ERROR filled. */
static int make_names_absolute(const struct request *request, struct error *error)
{
	char space[PATH_MAX];
	const char *absolute;
	char *name;

	for (unsigned i = 0; request->spec.method->family != ON_SERVER && i < request->nlocks;
	     i++) {
		absolute = path_absolute(request->locks[i].name, space);
		if (absolute == NULL)
			return errno == ENAMETOOLONG
			           ? too_long(error)
			           : error_set(error, ERROR_OPEN, "cannot name its directory");
		if (absolute == request->locks[i].name)
			continue;
		name = memory_lasting(strlen(absolute) + 1);
		if (name == NULL)
			return error_plain(error, ERROR_SYSTEM, "out of memory");
		request->locks[i].name = strcpy(name, absolute);
	}
	return 0;
}

/* ---- the keeper ---- */

/* In the front: fill KEEPER for REQUEST.  Returns 0, or -1 with ERROR filled: process
 * REQUEST->owner is this one or does not exist, for instance. */
static int begin_keeper(struct keeper *keeper, const struct request *request, struct error *error)
{
	*keeper = (struct keeper){
	    .holder = -1,
	    .to_holder = -1,
	    .from_holder = -1,
	    .errors = -1,
	    .front = -1,
	    .first = getpid(),
	    .due = deadline_never(),
	    .socket = -1,
	    .deaf = deadline_never(),
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
	if (watched_begin(&keeper->owner, request->owner) != 0)
		return error_plain(error, ERROR_USAGE, "--hold=%ld: no such process",
		    (long)request->owner);
	return hold_names_list(&keeper->names, request, error);
}

/* Raise the limit of open descriptors, if it is too low for a keeper: poll(2) refuses more
 * descriptors than the limit, and a connection that cannot be accepted would wake the keeper again
 * and again.  Returns 0, or -1 with ERROR filled. */
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

/* In the keeper's process: make the hold's ID, listen on its socket, and send the ID to the front.
 * Returns 0, or -1 with ERROR filled. */
static int listen_for_calls(struct keeper *keeper, struct error *error)
{
	char text[HOLD_ID_SIZE + 8];
	struct sockaddr_un address;
	socklen_t length;

	if (allow_descriptors(error) != 0 ||
	    hold_id_make(keeper->id, keeper->owner.pid, error) != 0)
		return -1;
	length = hold_id_address(keeper->id, &address);
	keeper->socket = descriptor_above_standard(
	    socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (keeper->socket < 0 || bind(keeper->socket, (struct sockaddr *)&address, length) != 0 ||
	    listen(keeper->socket, KEEPER_CLIENTS) != 0)
		return sandbox_error(error, "cannot make a socket for --release",
		    "run all steps under one semlock (semlock LOCK sh -c STEPS), or make this call "
		    "outside of the sandbox");
	snprintf(text, sizeof text, KEEPER_ID " %s", keeper->id);
	if (keeper_say(keeper->front, text) != 0)
		return error_set(error, ERROR_SYSTEM, "cannot send the call its hold's ID");
	return 0;
}

/* ---- three processes ---- */

/* Make the socket pair between the front, which has FRONT[0], and the keeper.  Returns 0, or -1
 * with ERROR filled. */
static int make_socket(int front[2], struct error *error)
{
	int status = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, front);

	for (size_t i = 0; i < 2 && status == 0; i++) {
		front[i] = descriptor_above_standard(front[i]);
		status = front[i] < 0 ? -1 : 0;
	}
	return status == 0 ? 0 : error_set(error, ERROR_SYSTEM, "cannot make a pair of sockets");
}

/* Become the holder, which goes on as semlock --hold.  INPUT, OUTPUT and ERRORS, pipes to and from
 * the keeper, become its standard input, output and error.  Returns 0, or -1 with ERROR filled. */
static int become_holder(int input, int output, int errors, struct error *error)
{
	const bool terminal = isatty(STDERR_FILENO);

	/* if one of them failed unnoticed, the keeper would wait for words that go elsewhere */
	if (dup2(errors, STDERR_FILENO) < 0 || dup2(input, STDIN_FILENO) < 0 ||
	    dup2(output, STDOUT_FILENO) < 0)
		return error_set(error, ERROR_SYSTEM, "cannot begin in the background");
	close(input);
	close(output);
	close(errors);
	if (terminal)
		report_to_terminal();
	if (status_fd >= 0)
		status_fd = STDOUT_FILENO;
	return 0;
}

/* In the keeper's process: fork the holder (step H2 of tests/models).  In the holder, returns 0, or
 * -1 with ERROR filled.  In the keeper, returns only on failure: -1 with ERROR filled. */
static int split_off(struct detachment *detachment, const struct request *request,
    struct keeper *keeper, struct error *error)
{
	int input[2], output[2], errors[2];

	setsid();
	if (listen_for_calls(keeper, error) != 0)
		return -1;
	if (descriptor_pipe(input) != 0 || descriptor_pipe(output) != 0 ||
	    descriptor_pipe(errors) != 0 || fcntl(errors[0], F_SETFL, O_NONBLOCK) != 0)
		return error_set(error, ERROR_SYSTEM, "cannot make a pipe");
	CRASH_POINT("detach.keeper");
	keeper->holder = fork();
	if (keeper->holder < 0)
		return error_no_process(error);
	if (keeper->holder == 0) {
		strcpy(detachment->id, keeper->id);
		close(input[1]);
		close(output[0]);
		close(errors[0]);
		close(keeper->socket);
		close(keeper->front);
		if (keeper->owner.pidfd >= 0)
			close(keeper->owner.pidfd);
		if (become_holder(input[0], output[1], errors[1], error) != 0)
			return -1;
		/* with --keep-place, the holder leaves the caller's directory before it waits */
		return request->keep_place ? make_names_absolute(request, error) : 0;
	}
	close(input[0]);
	close(output[1]);
	close(errors[1]);
	caller_fds_close(&detachment->caller);
	keeper->to_holder = input[1];
	keeper->from_holder = output[0];
	keeper->errors = errors[0];
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
	int front[2], status;
	pid_t pid;

	/* List the caller's descriptors first: later, our own would be among them.  Watch the owner
	 * before the fork (step H1 of tests/models): after it, another process could have the
	 * owner's PID. */
	if (caller_fds_list(&detachment->caller, error) != 0 ||
	    begin_keeper(&keeper, request, error) != 0 || make_socket(front, error) != 0)
		return -1;
	pid = fork();
	if (pid < 0)
		return error_no_process(error);
	if (pid == 0) {
		close(front[0]);
		keeper.front = front[1];
		status = split_off(detachment, request, &keeper, error);
		if (keeper.holder == 0)
			return status;
		keeper_fail(&keeper, error);
	}
	close(front[1]);
	detachment->is_front = true;
	detachment->front = front[0];
	return 0;
}
