/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/postgresql/conninfo.h"
#include "locksmith/postgresql/query.h"
#include "locksmith/postgresql/session.h"

#define FIRST_ANSWER (10 * SECOND)
/* When semlock no longer wants the lock, wait this long for the answer to a query in progress.  To
 * break the query off at once could leave a row. */
#define LAST_ANSWER (SECOND / 2)
/* The longest answer takes a few ms of processor time: one that takes this much never ends. */
#define ANSWER_EFFORT (SECOND / 2)

/* ---- errors ---- */

bool session_failed_by(const struct pg_lock *lock, const char *state)
{
	return strncmp(lock->session.state, state, strlen(state)) == 0;
}

int session_nonsense(struct pg_lock *lock)
{
	return error_plain(&lock->error, ERROR_UNAVAILABLE, "the server's answer is invalid");
}

static int silent(struct pg_lock *lock)
{
	lock->session.state[0] = '\0';
	return error_plain(&lock->error, ERROR_AWAY, "the server does not answer");
}

/* Can another try help?  Yes, if there is no SQLSTATE, because the network failed; or if it is 08:
 * connection, 25006: a standby, 40: deadlock, 53: resources, 57: shutdown, starting up. */
static bool may_pass(const struct pg_lock *lock)
{
	static const char *const passing[] = {"08", "25006", "40", "53", "57"};

	for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++)
		if (session_failed_by(lock, passing[i]))
			return true;
	return lock->session.state[0] == '\0';
}

/* Copy the SQLSTATE from MESSAGE to lock->session.state, and return the text that follows it.  With
 * PQERRORS_VERBOSE a message reads "FATAL:  28P01: password ...".  Before the session exists,
 * nothing else contains the SQLSTATE. */
static const char *take_state(struct pg_lock *lock, const char *message)
{
	const char *text = strstr(message, ":  ");
	char *state = lock->session.state;

	state[0] = '\0';
	if (text == NULL)
		return message;
	text += strlen(":  ");
	if (strspn(text, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") != 5 || text[5] != ':')
		return message;
	memcpy(state, text, 5);
	state[5] = '\0';
	return text + strlen("28P01: ");
}

/* Fill lock->error from the server's or libpq's message.  Returns -1. */
static int fail(struct pg_lock *lock, const char *message)
{
	const char *text = take_state(lock, message);
	int length = (int)strcspn(text, "\n");
	enum kind kind = may_pass(lock) ? ERROR_AWAY : ERROR_UNAVAILABLE;

	if (session_failed_by(lock, "28") || session_failed_by(lock, "42501"))
		kind = ERROR_PERMISSION;
	if (session_failed_by(lock, "55P03"))
		return error_plain(&lock->error, ERROR_AWAY,
		    "another session keeps semlock's table, or its entry for this lock, locked");
	return error_plain(&lock->error, kind, "%.*s", length, text);
}

/* ---- sessions ---- */

/* Replace libpq's message that "the session is read-only": libpq says that for a standby, too. */
static int read_only(struct pg_lock *lock)
{
	const char *standby = PQparameterStatus(lock->db, "in_hot_standby");

	if (standby != NULL && strcmp(standby, "on") == 0)
		return error_plain(&lock->error, ERROR_AWAY, "the server is a standby");
	return error_plain(&lock->error, ERROR_AWAY,
	    "default_transaction_read_only is on, for the server, the database or the role %.60s",
	    PQuser(lock->db));
}

static void note_warning(void *context, const PGresult *result)
{
	struct pg_lock *lock = context;
	const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);

	if (severity != NULL && strcmp(severity, "WARNING") == 0)
		lock->session.warned = true;
}

/* Is the answer useless, because semlock no longer wants the lock? */
static bool given_up(const struct pg_lock *lock)
{
	return lock->stage == PG_ENTERS && protocol_released();
}

/* Wait for the connection that was begun.  Returns 0, or -1 with lock->error filled. */
static int connect_by(struct pg_lock *lock, int64_t until)
{
	PostgresPollingStatusType next = PGRES_POLLING_WRITING;

	if (lock->db == NULL)
		return error_plain(&lock->error, ERROR_SYSTEM, "out of memory");
	PQsetErrorVerbosity(lock->db, PQERRORS_VERBOSE);
	PQsetNoticeReceiver(lock->db, note_warning, lock);
	while (PQstatus(lock->db) != CONNECTION_BAD && next != PGRES_POLLING_OK) {
		struct pollfd server = {PQsocket(lock->db),
		    next == PGRES_POLLING_READING ? POLLIN : POLLOUT, 0};

		if (clock_boottime() >= until || given_up(lock))
			return silent(lock);
		loop_turn(&server, 1, until);
		if (server.revents != 0)
			next = PQconnectPoll(lock->db);
	}
	if (PQstatus(lock->db) == CONNECTION_OK && PQsetnonblocking(lock->db, 1) == 0)
		return 0;
	fail(lock, PQerrorMessage(lock->db));
	if (PQconnectionNeedsPassword(lock->db))
		error_plain(&lock->error, ERROR_PERMISSION,
		    "the server requires a password: set SEMLOCK_PASSWORD or use ~/.pgpass");
	else if (strstr(lock->error.text, "session is read-only") != NULL)
		read_only(lock);
	return -1;
}

void session_close(struct pg_lock *lock)
{
	PQfinish(lock->db);
	lock->db = NULL;
	lock->session.ours = false;
	lock->session.listening = false;
}

/* Wait for the connection that was begun to the I-th host.  LEFT hosts are still to be tried before
 * UNTIL: a host that does not answer must leave time for the others.  Returns 0, or -1 with
 * lock->error filled. */
static int try_host(struct pg_lock *lock, unsigned int i, unsigned int left, int64_t until)
{
	int64_t now = clock_boottime();

	if (connect_by(lock, now + (until - now) / (left > 1 ? left : 1)) != 0) {
		session_close(lock);
		conninfo_remember(i, NULL);
		return -1;
	}
	conninfo_remember(i, lock->db);
	return 0;
}

/* Connect to the first host that gives us a session.  Try the addresses where hosts were reached
 * before, then the names: the resolver may be unreachable.  Returns 0, or -1 with lock->error
 * filled. */
static int connect_to_any(struct pg_lock *lock, int64_t until)
{
	unsigned int hosts = conninfo_hosts();
	char name[64];

	conninfo_application(lock->options, lock->token[0] == '\0' ? "waits" : "holds", name,
	    sizeof name);
	for (unsigned int i = 0; i < hosts; i++)
		if (conninfo_connect_again(i, name, &lock->db) &&
		    try_host(lock, i, 1 + hosts, until) == 0)
			return 0;
	for (unsigned int i = 0; !given_up(lock) && conninfo_connect(i, name, &lock->db); i++)
		if (try_host(lock, i, i < hosts ? hosts - i : 1, until) == 0)
			return 0;
	return -1;
}

/* Open a session.  Returns 0, or -1 with lock->error filled. */
static int open_session(struct pg_lock *lock, int64_t until)
{
	session_close(lock);
	if (connect_to_any(lock, until) != 0)
		return -1;
	if (PQserverVersion(lock->db) >= 140000)
		return 0;
	session_close(lock);
	return error_plain(&lock->error, ERROR_UNAVAILABLE, "PostgreSQL 14 or newer is needed");
}

int64_t session_answer_by(const struct pg_lock *lock)
{
	return earlier(lock->options->answer_by, clock_boottime() + FIRST_ANSWER);
}

int64_t session_try_by(const struct pg_lock *lock)
{
	int64_t lease = lock->stage == PG_ENTERS ? lock->place_ttl : lock->ttl;
	int64_t by = clock_boottime() + (lease > 6 * SECOND ? lease / 6 : SECOND);

	return lock->stage == PG_ENTERS ? earlier(lock->options->answer_by, by) : by;
}

/* ---- queries ---- */

int session_begin(struct pg_lock *lock, const char *commit, int64_t until)
{
	lock->session.state[0] = '\0';
	if (lock->db == NULL && open_session(lock, until) != 0)
		return -1;
	return query_begin(lock, commit, until);
}

int session_wait(struct pg_lock *lock, int64_t until)
{
	struct pollfd server = {PQsocket(lock->db), POLLIN, 0};
	PGnotify *notice;

	if (PQflush(lock->db) > 0)
		server.events |= POLLOUT;
	loop_turn(&server, 1, until);
	if ((server.revents & ~POLLOUT) != 0 && !PQconsumeInput(lock->db)) {
		fail(lock, PQerrorMessage(lock->db));
		session_close(lock);
		return -1;
	}
	/* Read the notifications here, so that a server that sends nothing else does not fill our
	 * memory. */
	while ((notice = PQnotifies(lock->db)) != NULL) {
		lock->session.heard = true;
		PQfreemem(notice);
	}
	return 0;
}

/* Return RESULT, the last one, or NULL if it is an error or invalid.  A warning is an error, too:
 * "canceling wait for synchronous replication" means that a standby may not know what was
 * committed. */
static PGresult *judge(struct pg_lock *lock, PGresult *result, int columns)
{
	ExecStatusType status = PQresultStatus(result);
	bool answered = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;

	if (answered && !lock->session.warned && PQnfields(result) == columns)
		return result;
	if (answered && lock->session.warned)
		error_plain(&lock->error, ERROR_AWAY,
		    "the server warns: its standby may not have it yet");
	else if (answered || result == NULL)
		session_nonsense(lock);
	else
		fail(lock, PQresultErrorMessage(result));
	PQclear(result);
	if (PQstatus(lock->db) != CONNECTION_OK)
		session_close(lock);
	return NULL;
}

enum answer {
	ANSWER_WHOLE, /* the last result has come */
	ANSWER_COMES,
	/* the last result will never come, for instance because the server sends a COPY */
	ANSWER_ENDLESS
};

/* Read what has come.  If one of several statements fails, its result is the last. */
static enum answer take_results(struct pg_lock *lock, PGresult **last, struct effort *effort,
    int64_t until)
{
	while (!PQisBusy(lock->db) && clock_boottime() < until) {
		PGresult *next = PQgetResult(lock->db);
		ExecStatusType status = PQresultStatus(next);

		if (next == NULL)
			return ANSWER_WHOLE;
		PQclear(*last);
		*last = next;
		if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT ||
		    status == PGRES_COPY_BOTH || effort_exceeds(effort, ANSWER_EFFORT))
			return ANSWER_ENDLESS;
	}
	return effort_exceeds(effort, ANSWER_EFFORT) ? ANSWER_ENDLESS : ANSWER_COMES;
}

PGresult *session_ask(struct pg_lock *lock, int columns, int64_t until)
{
	PGresult *last = NULL;
	struct effort effort = effort_begins();
	enum answer answer;

	lock->session.warned = false;
	lock->session.state[0] = '\0';
	if (!PQsendQuery(lock->db, lock->query.text)) {
		fail(lock, PQerrorMessage(lock->db));
		session_close(lock);
		return NULL;
	}
	while ((answer = take_results(lock, &last, &effort, until)) == ANSWER_COMES) {
		int64_t now = clock_boottime();

		if (given_up(lock)) {
			if (lock->released == 0)
				lock->released = now;
			until = earlier(until, lock->released + LAST_ANSWER);
		}
		if (now >= until)
			break;
		if (session_wait(lock, until) != 0) {
			PQclear(last);
			return NULL;
		}
	}
	if (answer == ANSWER_WHOLE)
		return judge(lock, last, columns);
	PQclear(last);
	session_close(lock);
	if (answer == ANSWER_COMES)
		silent(lock);
	else
		session_nonsense(lock);
	return NULL;
}

int session_do(struct pg_lock *lock, int columns, int64_t until)
{
	PGresult *result = session_ask(lock, columns, until);
	int rows = result != NULL ? atoi(PQcmdTuples(result)) : -1;

	PQclear(result);
	return rows;
}
