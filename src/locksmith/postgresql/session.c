/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/postgresql/pglock.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_OPTIONS 80
#define FIRST_ANSWER (10 * SECOND)
/* After the end of input a query that is under way may still be answered: broken off, it would
 * leave a row. */
#define LAST_ANSWER (SECOND / 2)
/* The processor time of the longest answer is a few milliseconds: one that takes more has no
 * end. */
#define ANSWER_EFFORT (SECOND / 2)

/* The longest query has the lock's name, of 511 bytes and twice that as a literal, a dozen
 * times. */
static struct {
	char text[32768];
	size_t length;
} query;

/* What the URL says without the lock's name, as libpq takes it apart. */
static PQconninfoOption *url_options;

static const char *option(const char *keyword)
{
	for (PQconninfoOption *o = url_options; o->keyword != NULL; o++)
		if (strcmp(o->keyword, keyword) == 0)
			return o->val != NULL ? o->val : "";
	return "";
}

/* libpq's reading of "postgresql://", FIRST (LENGTH bytes) and REST.  NULL with *error filled. */
static PQconninfoOption *conninfo(const char *first, size_t length, const char *rest,
    struct error *error)
{
	char url[2048], *reason = NULL;
	PQconninfoOption *options = NULL;

	if ((size_t)snprintf(url, sizeof url, "postgresql://%.*s%s", (int)length, first, rest) <
	    sizeof url)
		options = PQconninfoParse(url, &reason);
	if (options == NULL)
		error_plain(error, ERROR_USAGE, "the URL makes no sense: %.*s",
		    reason != NULL ? (int)strcspn(reason, "\n") : 8,
		    reason != NULL ? reason : "too long");
	PQfreemem(reason);
	return options;
}

/* "SCHEME://[USER@][HOST[:PORT][,...]]/NAME[?KEYWORD=VALUE&...]": a URL of libpq's, with the lock's
 * name where libpq has the database's; that is ?dbname=. */
int pg_parse(const char *text, struct url *url, struct error *error)
{
	const char *server = strstr(text, "://"), *parameters, *name, *sessions;
	char rest[1024];

	if (server == NULL)
		return error_plain(error, ERROR_USAGE, "this is no URL: %.100s", text);
	server += 3;
	parameters = server + strcspn(server, "?");
	url_options = conninfo(server, (size_t)(parameters - server), "", error);
	if (url_options == NULL)
		return -1;
	name = option("dbname");
	if (name[0] == '\0' || strlen(name) >= sizeof url->path)
		return error_plain(error, ERROR_USAGE,
		    "the URL must end in the lock's name, at most %zu bytes: "
		    "postgresql://HOST/NAME?dbname=DATABASE",
		    sizeof url->path - 1);
	for (const char *p = name; *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return error_plain(error, ERROR_USAGE,
			    "the lock's name must have no control characters");
	strcpy(url->path, name);
	PQconninfoFree(url_options);
	if ((size_t)snprintf(rest, sizeof rest, "/%s", parameters) >= sizeof rest)
		return error_plain(error, ERROR_USAGE, "the URL is too long");
	url_options = conninfo(server, strcspn(server, "/?"), rest, error);
	if (url_options == NULL)
		return -1;
	if (option("password")[0] != '\0' || option("sslpassword")[0] != '\0')
		return error_plain(error, ERROR_USAGE,
		    "a password in a URL can be read by everybody (ps): put it into "
		    "~/.pgpass or into SEMLOCK_PASSWORD");
	/* A standby cannot lock. */
	sessions = option("target_session_attrs")[0] != '\0' ? option("target_session_attrs")
	                                                     : getenv("PGTARGETSESSIONATTRS");
	if (sessions != NULL && strcmp(sessions, "read-write") != 0)
		return error_plain(error, ERROR_USAGE,
		    "target_session_attrs=%.40s (PGTARGETSESSIONATTRS) could lead to a server that "
		    "cannot lock: only read-write will do",
		    sessions);
	return 0;
}

/* The I-th element, from 0, of LIST ("a,b,c"); the only element of a list is that of every host.
 * False: LIST is shorter. */
static bool element(const char *list, unsigned int i, char *out, size_t size)
{
	bool alone = strchr(list, ',') == NULL;

	for (; i > 0 && !alone; i--) {
		list += strcspn(list, ",");
		if (*list++ == '\0')
			return false;
	}
	snprintf(out, size, "%.*s", (int)strcspn(list, ","), list);
	return true;
}

/* The value of KEYWORD where the URL has none; NULL: libpq is to take its own. */
static const char *otherwise(const char *keyword)
{
	static const struct {
		/* two variables, and what is taken without ours */
		const char *keyword, *of_libpq, *ours, *value;
	} set[] = {{"user", "PGUSER", "SEMLOCK_USER", NULL},
	    {"password", "PGPASSWORD", "SEMLOCK_PASSWORD", NULL},
	    {"sslrootcert", "PGSSLROOTCERT", "SEMLOCK_CACERT", NULL},
	    {"target_session_attrs", NULL, NULL, "read-write"},
	    {"keepalives_idle", NULL, NULL, "10"}, {"keepalives_interval", NULL, NULL, "5"},
	    {"keepalives_count", NULL, NULL, "3"}, {"tcp_user_timeout", NULL, NULL, "10000"}};
	const char *authority = getenv("SEMLOCK_CACERT");

	/* Nothing is sent to a server that the authority does not vouch for. */
	if (strcmp(keyword, "sslmode") == 0 && authority != NULL && authority[0] != '\0')
		return "verify-full";
	for (size_t i = 0; i < sizeof set / sizeof set[0]; i++)
		if (strcmp(keyword, set[i].keyword) == 0 &&
		    (set[i].of_libpq == NULL || getenv(set[i].of_libpq) == NULL))
			return set[i].ours != NULL ? getenv(set[i].ours) : set[i].value;
	return NULL;
}

void pg_application(const struct pglock *lock, const char *what, char *text, size_t size)
{
	text[0] = '\0';
	if (option("application_name")[0] == '\0' && getenv("PGAPPNAME") == NULL)
		/* PostgreSQL keeps 63 bytes */
		snprintf(text, size, "semlock %.48s %s", lock->options->url.path, what);
}

/* Begins to connect to the I-th host, from 0.  False: the URL has fewer. */
static bool start(struct pglock *lock, unsigned int i)
{
	const char *keywords[MOST_OPTIONS + 1], *values[MOST_OPTIONS + 1];
	char host[1024], hostaddr[256], port[16], application[64];
	size_t n = 0;

	if (!element(option("host"), i, host, sizeof host) ||
	    !element(option("hostaddr"), i, hostaddr, sizeof hostaddr) ||
	    !element(option("port"), i, port, sizeof port) ||
	    (i > 0 && strchr(option("host"), ',') == NULL &&
		strchr(option("hostaddr"), ',') == NULL))
		return false;
	pg_application(lock, lock->token[0] == '\0' ? "waits" : "holds", application,
	    sizeof application);
	for (PQconninfoOption *o = url_options; o->keyword != NULL && n < MOST_OPTIONS; o++, n++) {
		keywords[n] = o->keyword;
		values[n] = strcmp(o->keyword, "host") == 0       ? host
		            : strcmp(o->keyword, "hostaddr") == 0 ? hostaddr
		            : strcmp(o->keyword, "port") == 0     ? port
		            : strcmp(o->keyword, "client_encoding") == 0
		                ? "UTF8" /* pg_literal relies on it */
		            : o->val != NULL ? o->val
		            : strcmp(o->keyword, "application_name") == 0 && application[0] != '\0'
		                ? application
		                : otherwise(o->keyword);
	}
	keywords[n] = NULL;
	pg_close(lock);
	lock->db = PQconnectStartParams(keywords, values, 0);
	return true;
}

/* Fills lock->error from what the server or libpq says.  Returns -1. */
static int fail(struct pglock *lock, const char *message)
{
	const char *text = strstr(message, ":  ");
	char *state = lock->session.state;
	int length;
	bool away;

	/* With PQERRORS_VERBOSE a message reads "FATAL:  28P01: password ...", also before the
	 * session is there, and then nothing else tells the SQLSTATE. */
	state[0] = '\0';
	if (text == NULL || strspn(text + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") != 5 ||
	    text[8] != ':') {
		text = message;
	} else {
		snprintf(state, sizeof lock->session.state, "%.5s", text + 3);
		text += 10;
	}
	length = (int)strcspn(text, "\n");
	if (strncmp(state, "28", 2) == 0 || strcmp(state, "42501") == 0)
		return error_plain(&lock->error, ERROR_PERMISSION, "%.*s", length, text);
	if (strcmp(state, "55P03") == 0)
		return error_plain(&lock->error, ERROR_AWAY,
		    "another session keeps the lock's table or its name locked");
	/* No state: the network. 08: connection, 25006: a standby, 40: deadlock, 53: resources, 57:
	 * shutdown, starting up. */
	away = state[0] == '\0' || strncmp(state, "08", 2) == 0 || strcmp(state, "25006") == 0 ||
	       strncmp(state, "40", 2) == 0 || strncmp(state, "53", 2) == 0 ||
	       strncmp(state, "57", 2) == 0;
	return error_plain(&lock->error, away ? ERROR_AWAY : ERROR_UNAVAILABLE, "%.*s", length,
	    text);
}

static void note_warning(void *context, const PGresult *result)
{
	struct pglock *lock = context;
	const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);

	if (severity != NULL && strcmp(severity, "WARNING") == 0)
		lock->session.warned = true;
}

/* Connects, as start() has begun to. 0, or -1 with lock->error filled. */
static int connected(struct pglock *lock, int64_t until)
{
	PostgresPollingStatusType next = PGRES_POLLING_WRITING;

	if (lock->db == NULL)
		return error_plain(&lock->error, ERROR_SYSTEM, "no memory");
	PQsetErrorVerbosity(lock->db, PQERRORS_VERBOSE);
	PQsetNoticeReceiver(lock->db, note_warning, lock);
	while (PQstatus(lock->db) != CONNECTION_BAD && next != PGRES_POLLING_OK) {
		struct pollfd server = {PQsocket(lock->db),
		    next == PGRES_POLLING_READING ? POLLIN : POLLOUT, 0};

		if (clock_boottime() >= until || (lock->acquiring && protocol_released()))
			return error_plain(&lock->error, ERROR_AWAY, "the server does not answer");
		loop_turn(&server, 1, until);
		if (server.revents != 0)
			next = PQconnectPoll(lock->db);
	}
	if (PQstatus(lock->db) == CONNECTION_OK)
		return PQsetnonblocking(lock->db, 1), 0;
	fail(lock, PQerrorMessage(lock->db));
	if (PQconnectionNeedsPassword(lock->db))
		error_plain(&lock->error, ERROR_PERMISSION,
		    "the server wants a password: put it into ~/.pgpass or into SEMLOCK_PASSWORD");
	return -1;
}

void pg_close(struct pglock *lock)
{
	PQfinish(lock->db);
	lock->db = NULL;
	lock->session.ours = lock->session.listening = false;
}

/* Opens a session. 0, or -1 with lock->error filled. */
static int open_session(struct pglock *lock, int64_t until)
{
	unsigned int hosts = 1;

	for (const char *p = option("host"); *p != '\0'; p++)
		hosts += *p == ',';
	for (unsigned int i = 0; start(lock, i); i++) {
		int64_t now = clock_boottime(), share = (until - now) / (i < hosts ? hosts - i : 1);

		/* A host that does not answer leaves time for the others. */
		if (connected(lock, now + share) != 0) {
			if (lock->acquiring && protocol_released())
				break;
			continue;
		}
		if (PQserverVersion(lock->db) >= 140000)
			return 0;
		error_plain(&lock->error, ERROR_UNAVAILABLE, "PostgreSQL 14 or newer is needed");
		break;
	}
	pg_close(lock);
	return -1;
}

/* ---- queries ---- */

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
	return lock->db != NULL ? 0 : open_session(lock, until);
}

void pg_add(const char *format, ...)
{
	va_list values;

	va_start(values, format);
	query.length += (size_t)vsnprintf(query.text + query.length,
	    sizeof query.text - query.length, format, values);
	va_end(values);
	if (query.length >= sizeof query.text)
		abort();
}

/* E'...' has one meaning, whatever standard_conforming_strings says; the encoding is UTF-8, in
 * which no byte of a longer character is a quote. */
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
		fail(lock, PQerrorMessage(lock->db));
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

/* The last result, or NULL if that is an error or makes no sense.  A warning is an error, too:
 * "canceling wait for synchronous replication" means that a standby may not know what is committed
 * here. */
static PGresult *judge(struct pglock *lock, PGresult *result, int columns)
{
	ExecStatusType status = PQresultStatus(result);
	bool answered = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;

	if (answered && !lock->session.warned && PQnfields(result) == columns)
		return result;
	if (answered && lock->session.warned)
		error_plain(&lock->error, ERROR_AWAY,
		    "the server is not sure that its standby follows");
	else if (answered || result == NULL)
		pg_nonsense(lock);
	else
		fail(lock, PQresultErrorMessage(result));
	PQclear(result);
	if (PQstatus(lock->db) != CONNECTION_OK)
		pg_close(lock);
	return NULL;
}

/* 1: *LAST is the last result. 0: not all is here yet. -1: it never will be, as where the server
 * wants to copy a table. */
static int take_results(struct pglock *lock, PGresult **last, struct effort *effort, int64_t until)
{
	while (!PQisBusy(lock->db) && clock_boottime() < until) {
		PGresult *next = PQgetResult(lock->db);

		if (next == NULL)
			return 1;
		/* Of several statements the one that fails is the last. */
		PQclear(*last);
		*last = next;
		if (PQresultStatus(next) == PGRES_COPY_IN ||
		    PQresultStatus(next) == PGRES_COPY_OUT ||
		    PQresultStatus(next) == PGRES_COPY_BOTH ||
		    effort_exceeds(effort, ANSWER_EFFORT))
			return -1;
	}
	return effort_exceeds(effort, ANSWER_EFFORT) ? -1 : 0;
}

PGresult *pg_ask(struct pglock *lock, int columns, int64_t until)
{
	PGresult *last = NULL;
	struct effort effort = effort_begins();
	int got;

	lock->session.warned = false;
	lock->session.state[0] = '\0';
	if (!PQsendQuery(lock->db, query.text)) {
		fail(lock, PQerrorMessage(lock->db));
		pg_close(lock);
		return NULL;
	}
	while ((got = take_results(lock, &last, &effort, until)) == 0) {
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
		error_plain(&lock->error, ERROR_AWAY, "the server does not answer");
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
