/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "run/keeper_client.h"
#include "run/keeper_state.h"
#include "run/release.h"
#include "sys/deadline.h"
#include "sys/files.h"
#include "sys/process.h"

/* A keeper that is stopped does not answer; for so long it may be. */
#define PATIENCE (10 * SECOND)

/* Wait for the answer on CONNECTION.  Returns 0, or -1 with ERROR filled. */
static int wait_for_answer(int connection, const char *id, struct error *error)
{
	struct pollfd answer = {connection, POLLIN, 0};
	struct hold_id keeper;
	struct procfs_stat stat;
	int ready;

	hold_id_parse(id, &keeper);
	for (;;) {
		ready = poll(&answer, 1, PATIENCE / MILLISECOND);
		if (ready > 0)
			return 0;
		if (ready == 0 && process_numbers_ours() && process_stat(keeper.pid, &stat) &&
		    stat.state == 'T')
			return error_plain(error, ERROR_UNAVAILABLE,
			    "process %ld, which keeps it, is stopped: it releases the lock when it "
			    "goes on (kill -CONT %ld)",
			    (long)keeper.pid, (long)keeper.pid);
	}
}

/* Returns 0, or -1 with ERROR filled. */
static int ask(const struct request *request, struct error *error)
{
	const int connection = keeper_call(request, request->release, KEEPER_RELEASE, error);
	char message[KEEPER_MESSAGE + 1], *text;
	ssize_t got;

	if (connection < 0)
		return -1;
	if (wait_for_answer(connection, request->release, error) != 0) {
		close(connection);
		return -1;
	}
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
