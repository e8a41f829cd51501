/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "report/status_fd.h"
#include "run/detach.h"
#include "run/keeper.h"
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
			return errno == ERANGE || errno == ENAMETOOLONG
			           ? too_long(error)
			           : error_set(error, ERROR_OPEN, "cannot name its directory");
		length = strlen(here) + 1 + strlen(request->locks[i].name) + 1;
		if (length > PATH_MAX)
			return too_long(error);
		name = memory_lasting(length);
		if (name == NULL)
			return error_plain(error, ERROR_SYSTEM, "no memory");
		stpcpy(stpcpy(stpcpy(name, here), "/"), request->locks[i].name);
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
		/* the front empties it at its end, and must not wait for more */
		if (descriptor_pipe(all[i]) != 0 || fcntl(all[i][0], F_SETFL, O_NONBLOCK) != 0)
			return error_set(error, ERROR_SYSTEM, "cannot make a pipe");
	}
	return 0;
}

/* In the holder: semlock --hold from here on, with INPUT and OUTPUT of the keeper's.  Returns 0, or
 * -1 with ERROR filled. */
static int become_holder(struct detachment *detachment, const struct channels *channels, int input,
    int output, struct error *error)
{
	const bool terminal = isatty(STDERR_FILENO);

	detachment->is_front = false;
	/* else the keeper would wait for a word that goes elsewhere */
	if (dup2(channels->errors[1], STDERR_FILENO) < 0 || dup2(input, STDIN_FILENO) < 0 ||
	    dup2(output, STDOUT_FILENO) < 0)
		return error_set(error, ERROR_SYSTEM, "cannot begin in the background");
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
	return 0;
}

/* In the keeper's process: fork the holder (H2).  Returns 0 in the holder, or -1 with ERROR filled,
 * also there; the keeper does not return, unless it fails. */
static int split_off(struct detachment *detachment, const struct request *request,
    const struct channels *channels, struct keeper *keeper, struct error *error)
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
		return error_no_process(error);
	if (keeper->holder == 0) {
		close(input[1]);
		close(output[0]);
		close(keeper->socket);
		if (keeper->owner.end >= 0)
			close(keeper->owner.end);
		if (become_holder(detachment, channels, input[0], output[1], error) != 0)
			return -1;
		/* the wait, too, is to go on without the caller */
		return request->keep_place ? make_names_absolute(request, error) : 0;
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

	/* the list first, or what is opened here would be taken for the caller's; PID's end is
	 * watched before the fork, or another process might have its number by then (H1) */
	if (caller_fds_list(&detachment->caller, error) != 0 ||
	    keeper_begin(&keeper, request, error) != 0 || make_channels(&channels, error) != 0)
		return -1;
	pid = fork();
	if (pid < 0)
		return error_no_process(error);
	if (pid == 0) {
		keeper.front = channels.front[1];
		keeper.errors = channels.errors[0];
		keeper.events = channels.events[0];
		status = split_off(detachment, request, &channels, &keeper, error);
		if (keeper.holder == 0)
			return status;
		keeper_fail(&keeper, error);
	}
	close(channels.front[1]);
	close(channels.errors[1]);
	if (channels.events[1] >= 0)
		close(channels.events[1]);
	detachment->is_front = true;
	detachment->front = (struct front){
	    .request = request,
	    .keeper = channels.front[0],
	    .errors = channels.errors[0],
	    .events = channels.events[0],
	};
	return 0;
}
