/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "locksmith/postgresql/conninfo.h"

enum { MOST_OPTIONS = 80 };

/* The URL without the lock's name, as libpq parses it. */
static PQconninfoOption *url_options;

/* The address where a host was reached: the server may be reachable when the resolver is not. */
static struct place {
	char host[264];
	char hostaddr[INET6_ADDRSTRLEN + 20]; /* "": nothing is remembered */
	char port[16];
} remembered[URL_HOSTS];

static const char *option(const char *keyword)
{
	for (PQconninfoOption *o = url_options; o->keyword != NULL; o++)
		if (strcmp(o->keyword, keyword) == 0)
			return o->val != NULL ? o->val : "";
	return "";
}

/* Return libpq's reading of "postgresql://", FIRST (LENGTH bytes) and REST, or NULL with ERROR
 * filled. */
static PQconninfoOption *read_url(const char *first, size_t length, const char *rest,
    struct error *error)
{
	char url[2048], *reason = NULL;
	PQconninfoOption *options = NULL;

	if ((size_t)snprintf(url, sizeof url, "postgresql://%.*s%s", (int)length, first, rest) <
	    sizeof url)
		options = PQconninfoParse(url, &reason);
	if (options == NULL)
		error_plain(error, ERROR_USAGE, "invalid URL: %.*s",
		    reason != NULL ? (int)strcspn(reason, "\n") : 8,
		    reason != NULL ? reason : "too long");
	PQfreemem(reason);
	return options;
}

/* Copy the lock's name to url->path; libpq has taken it for the database's. */
static int take_name(struct url *url, struct error *error)
{
	const char *name = option("dbname");

	if (name[0] == '\0' || strlen(name) >= sizeof url->path)
		return error_plain(error, ERROR_USAGE,
		    "the URL's path must be the lock's name, at most %zu bytes: "
		    "postgresql://HOST/NAME?dbname=DATABASE",
		    sizeof url->path - 1);
	for (const char *p = name; *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return error_plain(error, ERROR_USAGE,
			    "the lock's name must have no control characters");
	strcpy(url->path, name);
	return 0;
}

int conninfo_parse(const char *text, struct url *url, struct error *error)
{
	const char *server = strstr(text, "://"), *parameters, *sessions;
	char rest[1024];
	int result;

	if (server == NULL)
		return error_plain(error, ERROR_USAGE, "this is no URL: %.100s", text);
	server += strlen("://");
	parameters = server + strcspn(server, "?");
	url_options = read_url(server, (size_t)(parameters - server), "", error);
	if (url_options == NULL)
		return -1;
	result = take_name(url, error);
	PQconninfoFree(url_options);
	url_options = NULL;
	if (result != 0)
		return -1;
	if ((size_t)snprintf(rest, sizeof rest, "/%s", parameters) >= sizeof rest)
		return error_plain(error, ERROR_USAGE, "the URL is too long");
	url_options = read_url(server, strcspn(server, "/?"), rest, error);
	if (url_options == NULL)
		return -1;
	if (option("password")[0] != '\0' || option("sslpassword")[0] != '\0')
		return error_plain(error, ERROR_USAGE,
		    "a password in a URL can be read by everybody (ps): put it into "
		    "~/.pgpass or into SEMLOCK_PASSWORD");
	/* a standby cannot lock */
	sessions = option("target_session_attrs");
	if (sessions[0] == '\0')
		sessions = getenv("PGTARGETSESSIONATTRS");
	if (sessions != NULL && strcmp(sessions, "read-write") != 0)
		return error_plain(error, ERROR_USAGE,
		    "target_session_attrs=%.40s (PGTARGETSESSIONATTRS) could lead to a server that "
		    "cannot lock: only read-write will do",
		    sessions);
	return 0;
}

/* Copy the I-th element, counted from 0, of LIST ("a,b,c") into ELEMENT (SIZE bytes).  If LIST has
 * a single element, it applies to every host.  Returns false if LIST is shorter. */
static bool find_element(const char *list, unsigned int i, char *element, size_t size)
{
	bool alone = strchr(list, ',') == NULL;

	for (; i > 0 && !alone; i--) {
		list += strcspn(list, ",");
		if (*list == '\0')
			return false;
		list++;
	}
	snprintf(element, size, "%.*s", (int)strcspn(list, ","), list);
	return true;
}

/* The value of KEYWORD if the URL has none; NULL: libpq uses its default. */
static const char *value_by_default(const char *keyword)
{
	static const struct {
		const char *keyword;
		const char *of_libpq, *ours; /* names of environment variables */
		const char *value;           /* if neither variable is set */
	} defaults[] = {{"user", "PGUSER", "SEMLOCK_USER", NULL},
	    {"password", "PGPASSWORD", "SEMLOCK_PASSWORD", NULL},
	    {"sslrootcert", "PGSSLROOTCERT", "SEMLOCK_CACERT", NULL},
	    {"sslcert", "PGSSLCERT", "SEMLOCK_CERT", NULL},
	    {"sslkey", "PGSSLKEY", "SEMLOCK_KEY", NULL},
	    {"target_session_attrs", NULL, NULL, "read-write"},
	    {"keepalives_idle", NULL, NULL, "10"}, {"keepalives_interval", NULL, NULL, "5"},
	    {"keepalives_count", NULL, NULL, "3"}, {"tcp_user_timeout", NULL, NULL, "10000"}};
	const char *authority = getenv("SEMLOCK_CACERT");

	/* send nothing to a server that the authority does not vouch for */
	if (strcmp(keyword, "sslmode") == 0 && authority != NULL && authority[0] != '\0')
		return "verify-full";
	for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++) {
		if (strcmp(keyword, defaults[i].keyword) != 0)
			continue;
		if (defaults[i].of_libpq != NULL && getenv(defaults[i].of_libpq) != NULL)
			return NULL;
		return defaults[i].ours != NULL ? getenv(defaults[i].ours) : defaults[i].value;
	}
	return NULL;
}

void conninfo_application(const struct options *options, const char *what, char *text, size_t size)
{
	text[0] = '\0';
	if (option("application_name")[0] != '\0' || getenv("PGAPPNAME") != NULL)
		return;
	snprintf(text, size, "semlock %.48s %s", options->url.path, what);
	for (unsigned char *p = (unsigned char *)text; *p != '\0'; p++)
		if (*p >= 0x80)
			*p = '?';
}

unsigned int conninfo_hosts(void)
{
	unsigned int hosts = 1;

	for (const char *p = option("host"); *p != '\0'; p++)
		hosts += *p == ',';
	return hosts;
}

static PGconn *connect_to(const struct place *place, const char *session)
{
	const char *keywords[MOST_OPTIONS + 1], *values[MOST_OPTIONS + 1];
	size_t n = 0;

	for (PQconninfoOption *o = url_options; o->keyword != NULL && n < MOST_OPTIONS; o++, n++) {
		keywords[n] = o->keyword;
		values[n] = o->val != NULL ? o->val : value_by_default(o->keyword);
		if (strcmp(o->keyword, "host") == 0)
			values[n] = place->host;
		else if (strcmp(o->keyword, "hostaddr") == 0)
			values[n] = place->hostaddr;
		else if (strcmp(o->keyword, "port") == 0)
			values[n] = place->port;
		else if (strcmp(o->keyword, "client_encoding") == 0)
			values[n] = "UTF8";
		else if (strcmp(o->keyword, "application_name") == 0 && session[0] != '\0')
			values[n] = session;
	}
	keywords[n] = NULL;
	return PQconnectStartParams(keywords, values, 0);
}

bool conninfo_connect(unsigned int i, const char *session, PGconn **db)
{
	bool several =
	    strchr(option("host"), ',') != NULL || strchr(option("hostaddr"), ',') != NULL;
	struct place place;

	if ((i > 0 && !several) ||
	    !find_element(option("host"), i, place.host, sizeof place.host) ||
	    !find_element(option("hostaddr"), i, place.hostaddr, sizeof place.hostaddr) ||
	    !find_element(option("port"), i, place.port, sizeof place.port))
		return false;
	*db = connect_to(&place, session);
	return true;
}

bool conninfo_connect_again(unsigned int i, const char *session, PGconn **db)
{
	if (i >= URL_HOSTS || remembered[i].hostaddr[0] == '\0')
		return false;
	*db = connect_to(&remembered[i], session);
	return true;
}

/* Must HOST be looked up?  Not if it is a number, or the directory of a socket. */
static bool is_name(const char *host)
{
	struct in6_addr address;

	return host != NULL && host[0] != '\0' && host[0] != '/' && host[0] != '@' &&
	       inet_pton(AF_INET, host, &address) != 1 && inet_pton(AF_INET6, host, &address) != 1;
}

void conninfo_remember(unsigned int i, const PGconn *db)
{
	struct place *place;

	if (i >= URL_HOSTS)
		return;
	place = &remembered[i];
	*place = (struct place){.hostaddr = ""};
	if (db == NULL || !is_name(PQhost(db)) || PQhostaddr(db) == NULL)
		return;
	snprintf(place->host, sizeof place->host, "%s", PQhost(db));
	snprintf(place->hostaddr, sizeof place->hostaddr, "%s", PQhostaddr(db));
	snprintf(place->port, sizeof place->port, "%s", PQport(db));
}
