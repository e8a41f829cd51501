/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/common/clock.h"
#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/postgresql/pglock.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ANSWER (10 * NS_PER_S)

int64_t pg_answer_by(const struct pglock *k)
{
	return clock_min(k->options->answer_by, clock_boottime() + FIRST_ANSWER);
}

/* With PQERRORS_VERBOSE a message reads "FATAL:  28P01: password ...", also before the session is there, and then
   nothing else tells the SQLSTATE. */
static const char *take_state(struct pglock *k, const char *message)
{
	const char *at = strstr(message, ":  ");

	k->state[0] = '\0';
	if (at == NULL || strspn(at + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") != 5 || at[8] != ':')
		return message;
	memcpy(k->state, at + 3, 5);
	k->state[5] = '\0';
	return at + 10;
}

int pg_failed(struct pglock *k, const char *message)
{
	const char *text = take_state(k, message);
	int length = (int)strcspn(text, "\n");
	bool away;

	if (strncmp(k->state, "28", 2) == 0 || strcmp(k->state, "42501") == 0)
		return failure_set(&k->failure, EXIT_NOTPERMITTED, "%.*s", length, text);
	/* No state: the network. 08: connection, 25006: a standby, 53: resources, 57: shutdown, starting up. */
	away = k->state[0] == '\0' || strncmp(k->state, "08", 2) == 0 || strcmp(k->state, "25006") == 0 ||
	       strncmp(k->state, "53", 2) == 0 || strncmp(k->state, "57", 2) == 0;
	return failure_fill(&k->failure, EXIT_UNAVAILABLE, away, "%.*s", length, text);
}

bool pg_given_up(struct pglock *k, int64_t until)
{
	if (k->acquiring && protocol_released())
		failure_set(&k->failure, EXIT_RELEASED, "semlock wants it no more");
	else if (clock_boottime() >= until)
		failure_away(&k->failure, "the server does not answer");
	else
		return false;
	return true;
}

int pg_wait(struct pglock *k, int64_t until)
{
	struct pollfd server = {PQsocket(k->db), POLLIN, 0};

	if (PQflush(k->db) > 0)
		server.events |= POLLOUT;
	loop_turn(&server, 1, until);
	if ((server.revents & ~POLLOUT) != 0 && !PQconsumeInput(k->db))
		return pg_failed(k, PQerrorMessage(k->db));
	return 0;
}

/* The last result, or NULL if that is an error. A warning is one, too: "canceling wait for synchronous
   replication" means that a standby may not know what is committed here. */
static PGresult *judge(struct pglock *k, PGresult *r)
{
	ExecStatusType status = PQresultStatus(r);

	if ((status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) && !k->warned)
		return r;
	if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
		failure_away(&k->failure, "the server is not sure that its standby follows");
	else
		pg_failed(k, r != NULL ? PQresultErrorMessage(r) : PQerrorMessage(k->db));
	PQclear(r);
	return NULL;
}

static int send_statement(
    struct pglock *k, const char *sql, int n, const char *const *values)
{
	k->warned = false;
	k->state[0] = '\0';
	if (n < 0 ? PQsendQuery(k->db, sql)
		  : PQsendQueryParams(k->db, sql, n, NULL, values, NULL, NULL, 0))
		return 0;
	return pg_failed(k, PQerrorMessage(k->db));
}

PGresult *pg_ask(
    struct pglock *k, int64_t until, const char *sql, int n, const char *const *values)
{
	PGresult *last = NULL, *next;

	if (send_statement(k, sql, n, values) != 0)
		return NULL;
	for (;;) {
		while (!PQisBusy(k->db)) {
			next = PQgetResult(k->db);
			if (next == NULL)
				return judge(k, last);
			/* Of several statements the one that fails is the last. */
			PQclear(last);
			last = next;
		}
		if (!pg_given_up(k, until) && pg_wait(k, until) == 0)
			continue;
		PQclear(last);
		return NULL;
	}
}

int pg_do(struct pglock *k, int64_t until, const char *sql, int n, const char *const *values)
{
	PGresult *r = pg_ask(k, until, sql, n, values);
	int rows = r != NULL ? atoi(PQcmdTuples(r)) : -1;

	PQclear(r);
	return rows;
}
