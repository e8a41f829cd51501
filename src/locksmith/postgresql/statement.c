/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/postgresql/pglock.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ANSWER (10 * SECOND)
/* After the end of input a query that is under way may still be answered: broken off, it would leave a row. */
#define LAST_ANSWER (SECOND / 2)

/* The longest query has the lock's name, of 511 bytes and twice that as a literal, a dozen times. */
static struct {
	char text[32768];
	size_t length;
} query;

int64_t pg_answer_by(const struct pglock *lock)
{
	return earlier(lock->options->answer_by, clock_boottime() + FIRST_ANSWER);
}

int64_t pg_try_by(const struct pglock *lock)
{
	int64_t by = clock_boottime() + (lock->ttl > 6 * SECOND ? lock->ttl / 6 : SECOND);

	return lock->held ? by : earlier(lock->options->answer_by, by);
}

int pg_begin(struct pglock *lock, int64_t until)
{
	query.length = 0;
	return lock->db != NULL ? 0 : pg_open(lock, until);
}

void pg_add(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	query.length += (size_t)vsnprintf(query.text + query.length, sizeof query.text - query.length, format, values);
	va_end(values);
	if (query.length >= sizeof query.text)
		abort();
}

/* E'...' has one meaning, whatever standard_conforming_strings says; the encoding is UTF-8, in which no byte of a
   longer character is a quote. */
void pg_literal(const char *text, char *literal, size_t size)
{
	size_t n = 2;

	memcpy(literal, "E'", n);
	for (; *text != '\0' && n + 4 < size; text++) {
		if (*text == '\'' || *text == '\\')
			literal[n++] = *text;
		literal[n++] = *text;
	}
	memcpy(literal + n, "'", 2);
}

int pg_nonsense(struct pglock *lock)
{
	return error_plain(&lock->error, ERROR_UNAVAILABLE, "the server's answer makes no sense");
}

int pg_wait(struct pglock *lock, int64_t until)
{
	struct pollfd server = {PQsocket(lock->db), POLLIN, 0};
	PGnotify *notice;

	if (PQflush(lock->db) > 0)
		server.events |= POLLOUT;
	loop_turn(&server, 1, until);
	if ((server.revents & ~POLLOUT) != 0 && !PQconsumeInput(lock->db)) {
		pg_failed(lock, PQerrorMessage(lock->db));
		pg_close(lock);
		return -1;
	}
	/* Taken here, a server that says nothing else fills no memory. */
	while ((notice = PQnotifies(lock->db)) != NULL) {
		lock->session.heard = true;
		PQfreemem(notice);
	}
	return 0;
}

/* The last result, or NULL if that is an error or makes no sense. A warning is an error, too: "canceling wait for
   synchronous replication" means that a standby may not know what is committed here. */
static PGresult *judge(struct pglock *lock, PGresult *result, int columns)
{
	ExecStatusType status = PQresultStatus(result);
	bool answered = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;

	if (answered && !lock->session.warned && PQnfields(result) == columns)
		return result;
	if (answered && lock->session.warned)
		error_plain(&lock->error, ERROR_AWAY, "the server is not sure that its standby follows");
	else if (answered || result == NULL)
		pg_nonsense(lock);
	else
		pg_failed(lock, PQresultErrorMessage(result));
	PQclear(result);
	if (PQstatus(lock->db) != CONNECTION_OK)
		pg_close(lock);
	return NULL;
}

/* 1: *LAST is the last result. 0: not all is here yet. -1: the server wants to copy a table, which never ends. */
static int take_results(struct pglock *lock, PGresult **last, int64_t until)
{
	while (!PQisBusy(lock->db) && clock_boottime() < until) {
		PGresult *next = PQgetResult(lock->db);

		if (next == NULL)
			return 1;
		/* Of several statements the one that fails is the last. */
		PQclear(*last);
		*last = next;
		if (PQresultStatus(next) == PGRES_COPY_IN || PQresultStatus(next) == PGRES_COPY_OUT ||
		    PQresultStatus(next) == PGRES_COPY_BOTH)
			return -1;
	}
	return 0;
}

PGresult *pg_ask(struct pglock *lock, int columns, int64_t until)
{
	PGresult *last = NULL;
	int got;

	lock->session.warned = false;
	lock->session.state[0] = '\0';
	if (!PQsendQuery(lock->db, query.text)) {
		pg_failed(lock, PQerrorMessage(lock->db));
		pg_close(lock);
		return NULL;
	}
	while ((got = take_results(lock, &last, until)) == 0) {
		int64_t now = clock_boottime();

		if (lock->acquiring && protocol_released()) {
			if (lock->released == 0)
				lock->released = now;
			until = earlier(until, lock->released + LAST_ANSWER);
		}
		if (now >= until)
			break;
		if (pg_wait(lock, until) != 0) {
			PQclear(last);
			return NULL;
		}
	}
	if (got > 0)
		return judge(lock, last, columns);
	PQclear(last);
	pg_close(lock);
	if (got == 0)
		pg_silent(lock);
	else
		pg_nonsense(lock);
	return NULL;
}

int pg_do(struct pglock *lock, int columns, int64_t until)
{
	PGresult *result = pg_ask(lock, columns, until);
	int rows = result != NULL ? atoi(PQcmdTuples(result)) : -1;

	PQclear(result);
	return rows;
}
