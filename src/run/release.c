/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "run/keeper_client.h"
#include "run/keeper_state.h"
#include "run/release.h"
#include "sys/files.h"

/* Returns 0, or -1 with ERROR filled. */
static int ask(const struct request *request, struct error *error)
{
	const int connection = keeper_call(request, request->release, KEEPER_RELEASE, error);
	char message[KEEPER_MESSAGE + 1], *text;
	ssize_t got;

	if (connection < 0)
		return -1;
	UNINTERRUPTED(got, recv(connection, message, KEEPER_MESSAGE, 0));
	close(connection);
	if (got <= 0)
		return error_plain(error, ERROR_LOST, "the process that held it has been killed");
	message[got] = '\0';
	if (keeper_answer(message, &text, error) != 0)
		return -1;
	if (*text != '\0' && !request->quiet)
		complain("%s: --release=%s: %s", request->label, request->release, text);
	return 0;
}

int release_hold(const struct request *request)
{
	struct error error;

	if (ask(request, &error) == 0)
		return EXIT_SUCCESS;
	complain("%s: --release=%s: %s", request->label, request->release, error.text);
	return exit_status_of(error.kind);
}
