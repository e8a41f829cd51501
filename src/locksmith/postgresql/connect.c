/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/common/clock.h"
#include "locksmith/common/loop.h"
#include "locksmith/postgresql/pglock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* libpq's reading of "postgresql://", FIRST (LENGTH bytes) and REST. NULL with *failure filled. */
static PQconninfoOption *conninfo(const char *first, size_t length, const char *rest, struct failure *failure)
{
	char url[2048], *error = NULL;
	PQconninfoOption *options = NULL;

	if ((size_t)snprintf(url, sizeof url, "postgresql://%.*s%s", (int)length, first, rest) < sizeof url)
		options = PQconninfoParse(url, &error);
	if (options == NULL)
		failure_set(failure, EXIT_USAGE, "the URL makes no sense: %.*s",
		    error != NULL ? (int)strcspn(error, "\n") : 8, error != NULL ? error : "too long");
	PQfreemem(error);
	return options;
}

static int take_name(const char *name, struct url *url, struct failure *failure)
{
	if (name[0] == '\0' || strlen(name) >= sizeof url->path)
		return failure_set(failure, EXIT_USAGE, "the URL must end in the lock's name, at most %zu bytes: "
						"postgresql://HOST/NAME?dbname=DATABASE", sizeof url->path - 1);
	for (const char *p = name; *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return failure_set(failure, EXIT_USAGE, "the lock's name must have no control characters");
	strcpy(url->path, name);
	return 0;
}

/* "SCHEME://[USER@][HOST[:PORT][,...]]/NAME[?KEYWORD=VALUE&...]": a URL of libpq's, with the lock's name where
   libpq has the database's; that is ?dbname=. */
int pg_parse(const char *text, struct url *url, struct failure *failure)
{
	const char *server = strstr(text, "://"), *query;
	char rest[1024];

	if (server == NULL)
		return failure_set(failure, EXIT_USAGE, "this is no URL: %.100s", text);
	server += 3;
	query = server + strcspn(server, "?");
	url_options = conninfo(server, (size_t)(query - server), "", failure);
	if (url_options == NULL || take_name(option("dbname"), url, failure) != 0)
		return -1;
	PQconninfoFree(url_options);
	if ((size_t)snprintf(rest, sizeof rest, "/%s", query) >= sizeof rest)
		return failure_set(failure, EXIT_USAGE, "the URL is too long");
	url_options = conninfo(server, strcspn(server, "/?"), rest, failure);
	if (url_options == NULL)
		return -1;
	if (option("password")[0] != '\0' || option("sslpassword")[0] != '\0')
		return failure_set(failure, EXIT_USAGE, "a password in a URL can be read by everybody (ps): put it into "
						"~/.pgpass or into SEMLOCK_PASSWORD");
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
	    /* A standby cannot lock. */
	    {"target_session_attrs", "PGTARGETSESSIONATTRS", NULL, "read-write"},
	    {"keepalives_idle", NULL, NULL, "10"}, {"keepalives_interval", NULL, NULL, "5"},
	    {"keepalives_count", NULL, NULL, "3"}, {"client_encoding", NULL, NULL, "UTF8"}};

	for (size_t i = 0; i < sizeof set / sizeof set[0]; i++)
		if (strcmp(keyword, set[i].keyword) == 0 &&
		    (set[i].of_libpq == NULL || getenv(set[i].of_libpq) == NULL))
			return set[i].ours != NULL ? getenv(set[i].ours) : set[i].value;
	return NULL;
}

/* What other sessions see of a waiter (pg_who reads it); PostgreSQL keeps 63 bytes. */
static void describe(const struct options *o, char *text, size_t size)
{
	char host[65] = "";

	gethostname(host, sizeof host - 1);
	snprintf(text, size, "semlock mode=%s pid=%ld host=%s", lease_mode_name(o->mode), o->pid, host);
}

/* Begins to connect to the Ith host. False: the URL has not so many. */
static bool start(struct pglock *k, unsigned int i)
{
	const char *keywords[MOST_OPTIONS + 1], *values[MOST_OPTIONS + 1];
	char host[1024], hostaddr[256], port[16], application[100];
	size_t n = 0;

	if (!element(option("host"), i, host, sizeof host) ||
	    !element(option("hostaddr"), i, hostaddr, sizeof hostaddr) ||
	    !element(option("port"), i, port, sizeof port) ||
	    (i > 0 && strchr(option("host"), ',') == NULL && strchr(option("hostaddr"), ',') == NULL))
		return false;
	describe(k->options, application, sizeof application);
	for (PQconninfoOption *o = url_options; o->keyword != NULL && n < MOST_OPTIONS; o++, n++) {
		keywords[n] = o->keyword;
		values[n] = strcmp(o->keyword, "host") == 0		  ? host
			    : strcmp(o->keyword, "hostaddr") == 0	  ? hostaddr
			    : strcmp(o->keyword, "port") == 0		  ? port
			    : strcmp(o->keyword, "application_name") == 0 ? application
			    : o->val != NULL				  ? o->val
									  : otherwise(o->keyword);
	}
	keywords[n] = NULL;
	PQfinish(k->db);
	k->db = PQconnectStartParams(keywords, values, 0);
	return true;
}

static void note_warning(void *context, const PGresult *r)
{
	struct pglock *k = context;
	const char *severity = PQresultErrorField(r, PG_DIAG_SEVERITY_NONLOCALIZED);

	if (severity != NULL && strcmp(severity, "WARNING") == 0)
		k->warned = true;
}

/* To the end of what was started. */
static int connected(struct pglock *k, int64_t until)
{
	PostgresPollingStatusType next = PGRES_POLLING_WRITING;

	PQsetErrorVerbosity(k->db, PQERRORS_VERBOSE);
	PQsetNoticeReceiver(k->db, note_warning, k);
	while (PQstatus(k->db) != CONNECTION_BAD && next != PGRES_POLLING_OK) {
		struct pollfd server = {PQsocket(k->db), next == PGRES_POLLING_READING ? POLLIN : POLLOUT, 0};

		if (pg_given_up(k, until))
			return -1;
		loop_turn(&server, 1, until);
		if (server.revents != 0)
			next = PQconnectPoll(k->db);
	}
	if (PQstatus(k->db) == CONNECTION_OK)
		return PQsetnonblocking(k->db, 1), 0;
	pg_failed(k, PQerrorMessage(k->db));
	if (PQconnectionNeedsPassword(k->db))
		failure_set(&k->failure, EXIT_NOTPERMITTED,
		    "the server wants a password: put it into ~/.pgpass or into SEMLOCK_PASSWORD");
	return -1;
}

/* Nothing of the user's, the database's or the server's settings may end a statement before its time, or have
   a commit answered before it is safe. The server looks every second whether a waiter is still there, and gives up
   a holder's silent connection in about a lease. */
static int set_up(struct pglock *k, int64_t until)
{
	/* An older server knows no such word; another that is in the list anyway does no harm. */
	const char *newer = PQserverVersion(k->db) >= 170000 ? "transaction_timeout" : "lock_timeout";
	char seconds[16];
	PGresult *r;
	int pid;

	snprintf(seconds, sizeof seconds, "%d", (int)(k->ttl / 4 / NS_PER_S) + 1);
	r = PG_ASK(k, until,
	    "SELECT pg_catalog.pg_backend_pid(), pg_catalog.hashtextextended($1, 7301),"
	    " pg_catalog.set_config(name, value, false) FROM (VALUES ('search_path', 'pg_catalog'),"
	    " ('synchronous_commit', 'on'), ('default_transaction_isolation', 'read committed'),"
	    " ('client_min_messages', 'warning')," /* judge() needs the warnings */
	    " ('statement_timeout', '0'), ('lock_timeout', '0'), ('idle_session_timeout', '0'), ($3, '0'),"
	    " ('client_connection_check_interval', '1s'), ('tcp_keepalives_idle', $2),"
	    " ('tcp_keepalives_interval', $2), ('tcp_keepalives_count', '2')) AS setting(name, value)",
	    k->name, seconds, newer);
	if (r == NULL)
		return -1;
	pid = atoi(PQgetvalue(r, 0, 0));
	snprintf(k->key, sizeof k->key, "%s", PQgetvalue(r, 0, 1));
	PQclear(r);
	if (pid != PQbackendPID(k->db))
		return failure_set(&k->failure, EXIT_UNAVAILABLE,
		    "a pooler (pgbouncer, ...) stands before the server, and may share one session among "
		    "several clients: connect to the server itself");
	return 0;
}

int pg_open(struct pglock *k, int64_t until)
{
	unsigned int hosts = 1;

	for (const char *p = option("host"); *p != '\0'; p++)
		hosts += *p == ',';
	k->listening = false;
	for (unsigned int i = 0; start(k, i); i++) {
		int64_t now = clock_boottime(), share = (until - now) / (i < hosts ? hosts - i : 1);

		/* A host that does not answer leaves time for the others. */
		if (connected(k, now + share) != 0) {
			if (k->failure.status == EXIT_RELEASED)
				return -1;
			continue;
		}
		if (PQserverVersion(k->db) < 140000)
			return failure_set(&k->failure, EXIT_UNAVAILABLE, "PostgreSQL 14 or newer is needed");
		return set_up(k, until);
	}
	return -1;
}
