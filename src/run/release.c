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
#include "run/keeper_client.h"
#include "run/release.h"
#include "sys/files.h"

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
	connection = keeper_connect(request->release, &id, 0, error);
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
