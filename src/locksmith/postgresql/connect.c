/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/common/loop.h"
#include "locksmith/common/protocol.h"
#include "locksmith/postgresql/pglock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_OPTIONS 80

/* What the URL says without the lock's name, as libpq takes it apart. */
static PQconninfoOption *url_options;

static const char *option(const char *keyword)
{
	for (PQconninfoOption *o = url_options; o->keyword != NULL; o++)
		if (strcmp(o->keyword, keyword) == 0)
			return o->val != NULL ? o->val : "";
	return "";
}

/* libpq's reading of "postgresql://", FIRST (LENGTH bytes) and REST. NULL with *error filled. */
static PQconninfoOption *conninfo(const char *first, size_t length, const char *rest, struct error *error)
{
	char url[2048], *reason = NULL;
	PQconninfoOption *options = NULL;

	if ((size_t)snprintf(url, sizeof url, "postgresql://%.*s%s", (int)length, first, rest) < sizeof url)
		options = PQconninfoParse(url, &reason);
	if (options == NULL)
		error_plain(error, ERROR_USAGE, "the URL makes no sense: %.*s",
		    reason != NULL ? (int)strcspn(reason, "\n") : 8, reason != NULL ? reason : "too long");
	PQfreemem(reason);
	return options;
}

static int take_name(const char *name, struct url *url, struct error *error)
{
	if (name[0] == '\0' || strlen(name) >= sizeof url->path)
		return error_plain(error, ERROR_USAGE, "the URL must end in the lock's name, at most %zu bytes: "
						"postgresql://HOST/NAME?dbname=DATABASE", sizeof url->path - 1);
	for (const char *p = name; *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return error_plain(error, ERROR_USAGE, "the lock's name must have no control characters");
	strcpy(url->path, name);
	return 0;
}

/* "SCHEME://[USER@][HOST[:PORT][,...]]/NAME[?KEYWORD=VALUE&...]": a URL of libpq's, with the lock's name where
   libpq has the database's; that is ?dbname=. */
int pg_parse(const char *text, struct url *url, struct error *error)
{
	const char *server = strstr(text, "://"), *query, *sessions;
	char rest[1024];

	if (server == NULL)
		return error_plain(error, ERROR_USAGE, "this is no URL: %.100s", text);
	server += 3;
	query = server + strcspn(server, "?");
	url_options = conninfo(server, (size_t)(query - server), "", error);
	if (url_options == NULL || take_name(option("dbname"), url, error) != 0)
		return -1;
	PQconninfoFree(url_options);
	if ((size_t)snprintf(rest, sizeof rest, "/%s", query) >= sizeof rest)
		return error_plain(error, ERROR_USAGE, "the URL is too long");
	url_options = conninfo(server, strcspn(server, "/?"), rest, error);
	if (url_options == NULL)
		return -1;
	if (option("password")[0] != '\0' || option("sslpassword")[0] != '\0')
		return error_plain(error, ERROR_USAGE, "a password in a URL can be read by everybody (ps): put it into "
						"~/.pgpass or into SEMLOCK_PASSWORD");
	/* A standby cannot lock. */
	sessions = option("target_session_attrs")[0] != '\0' ? option("target_session_attrs") : getenv("PGTARGETSESSIONATTRS");
	if (sessions != NULL && strcmp(sessions, "read-write") != 0)
		return error_plain(error, ERROR_USAGE, "target_session_attrs=%.40s (PGTARGETSESSIONATTRS) could lead to a server that "
						"cannot lock: only read-write will do", sessions);
	return 0;
}

/* The I-th element of a list "a,b,c"; a list of one is for all. False: it has not so many. */
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

/* What the URL and libpq's environment leave open. */
static const char *otherwise(const char *keyword)
{
	static const struct {
		const char *keyword, *of_libpq, *ours, *value; /* two variables, and what is taken without ours */
	} set[] = {{"user", "PGUSER", "SEMLOCK_USER", NULL}, {"password", "PGPASSWORD", "SEMLOCK_PASSWORD", NULL},
	    {"sslrootcert", "PGSSLROOTCERT", "SEMLOCK_CACERT", NULL}, {"target_session_attrs", NULL, NULL, "read-write"},
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
		snprintf(text, size, "semlock %.48s %s", lock->options->url.path, what); /* PostgreSQL keeps 63 bytes */
}

/* Begins to connect to the Ith host. False: the URL has not so many. */
static bool start(struct pglock *lock, unsigned int i)
{
	const char *keywords[MOST_OPTIONS + 1], *values[MOST_OPTIONS + 1];
	char host[1024], hostaddr[256], port[16], application[64];
	size_t n = 0;

	if (!element(option("host"), i, host, sizeof host) ||
	    !element(option("hostaddr"), i, hostaddr, sizeof hostaddr) ||
	    !element(option("port"), i, port, sizeof port) ||
	    (i > 0 && strchr(option("host"), ',') == NULL && strchr(option("hostaddr"), ',') == NULL))
		return false;
	pg_application(lock, lock->token[0] == '\0' ? "waits" : "holds", application, sizeof application);
	for (PQconninfoOption *o = url_options; o->keyword != NULL && n < MOST_OPTIONS; o++, n++) {
		keywords[n] = o->keyword;
		values[n] = strcmp(o->keyword, "host") == 0		 ? host
			    : strcmp(o->keyword, "hostaddr") == 0	 ? hostaddr
			    : strcmp(o->keyword, "port") == 0		 ? port
			    : strcmp(o->keyword, "client_encoding") == 0 ? "UTF8" /* pg_literal relies on it */
			    : o->val != NULL				 ? o->val
			    : strcmp(o->keyword, "application_name") == 0 && application[0] != '\0' ? application
										 : otherwise(o->keyword);
	}
	keywords[n] = NULL;
	pg_close(lock);
	lock->db = PQconnectStartParams(keywords, values, 0);
	return true;
}

/* With PQERRORS_VERBOSE a message reads "FATAL:  28P01: password ...", also before the session is there, and then
   nothing else tells the SQLSTATE. */
static const char *take_state(struct pglock *lock, const char *message)
{
	const char *at = strstr(message, ":  ");

	lock->session.state[0] = '\0';
	if (at == NULL || strspn(at + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") != 5 || at[8] != ':')
		return message;
	memcpy(lock->session.state, at + 3, 5);
	lock->session.state[5] = '\0';
	return at + 10;
}

int pg_failed(struct pglock *lock, const char *message)
{
	const char *text = take_state(lock, message), *state = lock->session.state;
	int length = (int)strcspn(text, "\n");
	bool away;

	if (strncmp(state, "28", 2) == 0 || strcmp(state, "42501") == 0)
		return error_plain(&lock->error, ERROR_PERMISSION, "%.*s", length, text);
	if (strcmp(state, "55P03") == 0)
		return error_plain(&lock->error, ERROR_AWAY, "another session keeps the lock's table or its name locked");
	/* No state: the network. 08: connection, 25006: a standby, 40: deadlock, 53: resources, 57: shutdown, starting up. */
	away = state[0] == '\0' || strncmp(state, "08", 2) == 0 || strcmp(state, "25006") == 0 || strncmp(state, "40", 2) == 0 ||
	       strncmp(state, "53", 2) == 0 || strncmp(state, "57", 2) == 0;
	return error_plain(&lock->error, away ? ERROR_AWAY : ERROR_UNAVAILABLE, "%.*s", length, text);
}

int pg_silent(struct pglock *lock)
{
	return error_plain(&lock->error, ERROR_AWAY, "the server does not answer");
}

static void note_warning(void *context, const PGresult *result)
{
	struct pglock *lock = context;
	const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);

	if (severity != NULL && strcmp(severity, "WARNING") == 0)
		lock->session.warned = true;
}

/* To the end of what was started. */
static int connected(struct pglock *lock, int64_t until)
{
	PostgresPollingStatusType next = PGRES_POLLING_WRITING;

	if (lock->db == NULL)
		return error_plain(&lock->error, ERROR_SYSTEM, "no memory");
	PQsetErrorVerbosity(lock->db, PQERRORS_VERBOSE);
	PQsetNoticeReceiver(lock->db, note_warning, lock);
	while (PQstatus(lock->db) != CONNECTION_BAD && next != PGRES_POLLING_OK) {
		struct pollfd server = {PQsocket(lock->db), next == PGRES_POLLING_READING ? POLLIN : POLLOUT, 0};

		if (clock_boottime() >= until || (lock->acquiring && protocol_released()))
			return pg_silent(lock);
		loop_turn(&server, 1, until);
		if (server.revents != 0)
			next = PQconnectPoll(lock->db);
	}
	if (PQstatus(lock->db) == CONNECTION_OK)
		return PQsetnonblocking(lock->db, 1), 0;
	pg_failed(lock, PQerrorMessage(lock->db));
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

int pg_open(struct pglock *lock, int64_t until)
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
