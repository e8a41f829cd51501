/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "owners/hold_id.h"
#include "run/keeper.h"
#include "run/release.h"
#include "sys/files.h"
#include "sys/process.h"

/* Is the process at the other end of CONNECTION the one that ID names?  Any process may listen on a
 * socket of this name after that has ended. */
static int check_keeper(int connection, const struct hold_id *id, struct error *error)
{
	struct ucred peer = {.pid = 0};
	socklen_t length = sizeof peer;
	struct procfs_stat stat;

	if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
		return error_set(error, ERROR_SYSTEM, "cannot see which process holds it");
	if (peer.uid != geteuid() && geteuid() != 0)
		return error_plain(error, ERROR_PERMISSION, "this hold belongs to user %lu",
		    (unsigned long)peer.uid);
	if (peer.pid != id->pid ||
	    (id->started != 0 && process_numbers_ours() && process_stat(peer.pid, &stat) &&
		stat.started != id->started))
		return error_plain(error, ERROR_PERMISSION,
		    "another process answers for it, or one of another PID namespace");
	return 0;
}

/* Returns a connection to the keeper of REQUEST->release, or -1 with ERROR filled. */
static int connect_to_keeper(const struct request *request, const struct hold_id *id,
    struct error *error)
{
	struct sockaddr_un address;
	const socklen_t length = hold_id_address(request->release, &address);
	int connection =
	    descriptor_above_standard(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
	int result;

	if (connection < 0)
		return error_set(error, ERROR_SYSTEM, "cannot make a socket");
	UNINTERRUPTED(result, connect(connection, (struct sockaddr *)&address, length));
	if (result != 0 && errno == ECONNREFUSED)
		error_plain(error, ERROR_LOST,
		    "this hold has ended before: it was released, or its process, its time or its "
		    "lock was over");
	else if (result != 0)
		error_set(error, ERROR_SYSTEM, "cannot ask for this hold");
	else if (check_keeper(connection, id, error) == 0)
		return connection;
	close(connection);
	return -1;
}

/* Returns 0, or -1 with ERROR filled. */
static int ask(const struct request *request, struct error *error)
{
	char name[PATH_MAX + 1], message[KEEPER_MESSAGE + 1], *text;
	struct hold_id id;
	int connection, length;
	ssize_t got;

	if (!hold_id_parse(request->release, &id))
		return error_plain(error, ERROR_USAGE,
		    "this is not the ID of a hold: --detach prints it, and --who shows it");
	if (keeper_lock_name(request->locks[0].name, name, error) != 0)
		return -1;
	connection = connect_to_keeper(request, &id, error);
	if (connection < 0)
		return -1;
	length = snprintf(message, sizeof message, KEEPER_RELEASE " %s", name);
	got = send(connection, message, (size_t)length, MSG_NOSIGNAL);
	if (got == length)
		UNINTERRUPTED(got, recv(connection, message, KEEPER_MESSAGE, 0));
	close(connection);
	if (got <= 0)
		return error_plain(error, ERROR_LOST, "the process that held it has been killed");
	message[got] = '\0';
	if (strtol(message, &text, 10) == EXIT_SUCCESS)
		return 0;
	if (atoi(message) == EXIT_LOST)
		return error_plain(error, ERROR_LOST, "this hold has ended before:%s", text);
	return error_plain(error, (enum kind)atoi(message), "%s", text + strspn(text, " "));
}

int release_hold(const struct request *request)
{
	struct error error;

	if (ask(request, &error) == 0)
		return EXIT_SUCCESS;
	complain("%s: --release=%s: %s", request->label, request->release, error.text);
	return exit_status_of(error.kind);
}
