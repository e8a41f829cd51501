#include <config.h>

#include "locksmith/etcd/etcdrpc.h"

#include "locksmith/common/clock.h"
#include "locksmith/etcd/etcdctl.h"
#include "locksmith/etcd/etcdqueue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define LONGEST_ANSWER ((size_t)4 * 1024 * 1024)
#define PAUSE (150 * NS_PER_MS) /* when all endpoints have been tried */

enum grpc { GRPC_DENIED = 7, GRPC_UNAUTHENTICATED = 16 };

static enum etcd_reply log_in(struct etcd *e, int64_t until);

int http_open(struct transfer *t, struct buffer *answer)
{
	const char *ca = etcdctl_variable("CACERT");
	const char *cert = etcdctl_variable("CERT"), *key = etcdctl_variable("KEY");
	CURL *c;

	if (transfer_open(t) != 0)
		return -1;
	c = t->easy;
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	/* etcd's plain listeners take HTTP/2 for gRPC; the gateway speaks 1.1. */
	curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, buffer_receive);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, answer);
	if (ca != NULL)
		curl_easy_setopt(c, CURLOPT_CAINFO, ca);
	if (cert != NULL)
		curl_easy_setopt(c, CURLOPT_SSLCERT, cert);
	if (key != NULL)
		curl_easy_setopt(c, CURLOPT_SSLKEY, key);
	return 0;
}

void http_prepare(struct transfer *t, const char *url, struct curl_slist *headers, const char *body)
{
	curl_easy_setopt(t->easy, CURLOPT_URL, url);
	curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(t->easy, CURLOPT_COPYPOSTFIELDS, body);
}

int http_post(struct transfer *t, struct buffer *answer, int64_t until, const bool *abort)
{
	long status = 0;

	buffer_clear(answer);
	if (transfer_run(t, until, abort) != CURLE_OK)
		return 0;
	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	return (int)status;
}

static enum etcd_reply etcd_fatal(struct etcd *e, int status, const char *text)
{
	failure_set(&e->failure, status, "%s", text);
	return ETCD_FATAL;
}

/* The call to an endpoint failed: the message has the failures of all. MENDS: it may succeed later. */
static enum etcd_reply etcd_failure(struct etcd *e, const char *text, bool mends)
{
	char all[sizeof e->failure.text] = "";
	size_t used = 0;

	snprintf(e->failed[e->current], sizeof e->failed[0], "%s", text);
	e->away = e->away || mends;
	for (unsigned int i = 0; i < e->url->hosts && used < sizeof all; i++)
		if (e->failed[i][0] != '\0')
			used += (size_t)snprintf(all + used, sizeof all - used, "%s%s%s%s",
			    used > 0 ? "; " : "", e->url->hosts > 1 ? e->url->host[i] : "",
			    e->url->hosts > 1 ? ": " : "", e->failed[i]);
	if (e->away)
		failure_away(&e->failure, "%s", all);
	else
		failure_set(&e->failure, EXIT_UNAVAILABLE, "%s", all);
	return ETCD_SILENT;
}

/* What an error reply means. */
static enum etcd_reply refusal_reply(struct etcd *e, int status, const json_t *answer)
{
	const char *text = json_string_value(json_object_get(answer, "message"));
	int64_t code = etcdqueue_int(answer, "code");
	char line[200];

	if (text == NULL)
		text = json_string_value(json_object_get(answer, "error"));
	if (text == NULL)
		text = "no words";
	snprintf(line, sizeof line, "HTTP %d: %s", status, text);
	if (strstr(text, "lease not found") != NULL) {
		failure_set(&e->failure, EXIT_UNAVAILABLE, "%s", line);
		return ETCD_GONE;
	}
	if (code == GRPC_DENIED) {
		failure_set(&e->failure, EXIT_NOTPERMITTED,
		    "%s: the user needs a role with this: etcdctl role grant-permission ROLE "
		    "readwrite --prefix=true '%s'",
		    text, e->url->path);
		return ETCD_FATAL;
	}
	if (strstr(text, "authentication") != NULL || strstr(text, "user name") != NULL)
		return etcd_fatal(e, EXIT_NOTPERMITTED, text);
	/* Every member says so until somebody has made room: with -w that is waited for. */
	if (strstr(text, "space exceeded") != NULL) {
		failure_away(&e->failure, "%s", line);
		return ETCD_FATAL;
	}
	if (status == 404 || status == 400 || status == 403 || status == 405 || status == 401)
		return etcd_fatal(e, EXIT_UNAVAILABLE, line);
	/* No leader, timed out, overloaded: the next endpoint, or the next moment. */
	return etcd_failure(e, line, true);
}

/* No answer came. A TLS error is no temporary one. */
static enum etcd_reply no_answer(struct etcd *e)
{
	const char *error = e->transfer.error;
	CURLcode result = e->transfer.ended ? e->transfer.result : CURLE_OPERATION_TIMEDOUT;
	char line[sizeof e->failed[0]];

	if (result == CURLE_GOT_NOTHING && strncmp(e->base[0], "http:", 5) == 0)
		error = "the connection was ended without an answer: if this server wants TLS, "
			"say etcds://";
	if (result == CURLE_SSL_CONNECT_ERROR) {
		snprintf(line, sizeof line, "%.60s (without TLS: etcd://)", error);
		error = line;
	}
	return etcd_failure(e, error,
	    result != CURLE_SSL_CONNECT_ERROR && result != CURLE_PEER_FAILED_VERIFICATION &&
		result != CURLE_SSL_CACERT_BADFILE && result != CURLE_SSL_CERTPROBLEM);
}

/* One endpoint, once. */
static enum etcd_reply ask_endpoint(
    struct etcd *e, const char *path, const char *body, int64_t until, json_t **answer)
{
	char url[400];
	int status;

	snprintf(url, sizeof url, "%s%s", e->base[e->current], path);
	http_prepare(&e->transfer, url, e->headers, body);
	e->sent++;
	status = http_post(&e->transfer, &e->answer, until, e->abort);
	*answer = status != 0 && !e->answer.overflow
		      ? json_loads(buffer_text(&e->answer), JSON_DISABLE_EOF_CHECK, NULL)
		      : NULL;
	if (status == 0)
		return no_answer(e);
	e->reached = true;
	if (status == 200 && json_is_object(*answer))
		return ETCD_OK;
	return refusal_reply(e, status, *answer);
}

/* A login lapses with a restart of the server, or after some minutes without use. */
static bool must_log_in(const struct etcd *e, const json_t *answer)
{
	int64_t code = etcdqueue_int(answer, "code");
	const char *text = json_string_value(json_object_get(answer, "message"));

	if (e->login.user[0] == '\0')
		return false;
	return code == GRPC_UNAUTHENTICATED ||
	       (text != NULL && strstr(text, "invalid auth token") != NULL) ||
	       (text != NULL && strstr(text, "revision of auth store is old") != NULL);
}

static enum etcd_reply call_endpoints(
    struct etcd *e, const char *path, const char *body, int64_t until, json_t **answer)
{
	bool may_log_in = strcmp(path, "/v3/auth/authenticate") != 0;
	enum etcd_reply reply;

	e->sent = 0;
	e->away = false;
	memset(e->failed, 0, sizeof e->failed);
	for (unsigned int tries = 1;; tries++) {
		reply = ask_endpoint(e, path, body,
		    clock_min(until, boottime_now() + (e->reached ? e->endpoint_timeout : e->first_timeout)), answer);
		if (reply != ETCD_OK && may_log_in && must_log_in(e, *answer)) {
			may_log_in = false;
			json_decref(*answer);
			*answer = NULL;
			if (log_in(e, until) != ETCD_OK)
				return ETCD_FATAL;
			continue;
		}
		if (reply == ETCD_OK)
			return reply;
		json_decref(*answer);
		*answer = NULL;
		if (reply != ETCD_SILENT || (e->abort != NULL && *e->abort))
			return reply;
		etcdrpc_rotate(e);
		if (tries % e->url->hosts == 0) {
			/* No endpoint ever answered: a wrong address, most likely. */
			if (!e->reached)
				return ETCD_FATAL;
			transfer_pause(clock_min(until, boottime_now() + PAUSE));
		}
		if (boottime_now() >= until)
			return ETCD_SILENT;
	}
}

enum etcd_reply etcdrpc_call(
    struct etcd *e, const char *path, json_t *body, int64_t until, json_t **answer)
{
	char *text = json_dumps(body, JSON_COMPACT);
	enum etcd_reply reply;

	*answer = NULL;
	json_decref(body);
	if (text == NULL)
		return etcd_fatal(e, EXIT_INTERNAL, "out of memory, or a name that is not UTF-8");
	reply = call_endpoints(e, path, text, until, answer);
	free(text);
	return reply;
}

void etcdrpc_rotate(struct etcd *e)
{
	e->current = (e->current + 1) % e->url->hosts;
}

static enum etcd_reply make_headers(struct etcd *e, const char *auth_token)
{
	char line[2100];

	curl_slist_free_all(e->headers);
	e->headers = curl_slist_append(NULL, "Content-Type: application/json");
	if (auth_token != NULL) {
		snprintf(line, sizeof line, "Authorization: %s", auth_token);
		e->headers = curl_slist_append(e->headers, line);
	}
	return e->headers != NULL ? ETCD_OK : etcd_fatal(e, EXIT_INTERNAL, "out of memory");
}

static enum etcd_reply log_in(struct etcd *e, int64_t until)
{
	json_t *body =
	    json_pack("{s:s, s:s}", "name", e->login.user, "password", e->login.password);
	json_t *answer = NULL;
	enum etcd_reply reply;
	unsigned int sent = e->sent;
	const char *auth_token;

	make_headers(e, NULL);
	reply = etcdrpc_call(e, "/v3/auth/authenticate", body, until, &answer);
	e->sent = sent;
	/* As etcdctl does: a server without authentication needs no user. */
	if (reply != ETCD_OK && strstr(e->failure.text, "authentication is not enabled") != NULL) {
		e->login.user[0] = '\0';
		return ETCD_OK;
	}
	if (reply != ETCD_OK)
		return ETCD_FATAL;
	auth_token = json_string_value(json_object_get(answer, "token"));
	/* A header of our own making must stay one line. */
	if (auth_token == NULL || strlen(auth_token) > 2000 || strpbrk(auth_token, "\r\n") != NULL)
		reply = etcd_fatal(e, EXIT_NOTPERMITTED, "the login gave no token");
	else
		reply = make_headers(e, auth_token);
	json_decref(answer);
	return reply;
}

static void make_endpoints(struct etcd *e)
{
	bool tls = strcasecmp(e->url->scheme, "etcds") == 0;

	for (unsigned int i = 0; i < e->url->hosts; i++) {
		const char *host = e->url->host[i];
		const char *bracket = strrchr(host, ']');
		bool port = strchr(bracket != NULL ? bracket : host, ':') != NULL;

		snprintf(e->base[i], sizeof e->base[i], "http%s://%s%s", tls ? "s" : "", host,
		    port ? "" : ":2379");
	}
	/* Clients spread over the endpoints. */
	e->current = (unsigned int)getpid() % e->url->hosts;
}

enum etcd_reply etcdrpc_open(struct etcd *e, const struct url *url, int64_t first_timeout, int64_t endpoint_timeout,
    int64_t until)
{
	*e = (struct etcd){.url = url, .first_timeout = first_timeout, .endpoint_timeout = endpoint_timeout,
	    .answer.limit = LONGEST_ANSWER};
	make_endpoints(e);
	if (http_open(&e->transfer, &e->answer) != 0)
		return etcd_fatal(e, EXIT_INTERNAL, "out of memory");
	if (etcdctl_login(url, &e->login, &e->failure) != 0)
		return ETCD_FATAL;
	if (e->login.user[0] != '\0' && !e->login.has_password) {
		failure_set(&e->failure, EXIT_NOTPERMITTED,
		    "no password for %s at %.100s: set ETCDCTL_PASSWORD or "
		    "SEMLOCK_PASSWORD",
		    e->login.user, url->host[0]);
		return ETCD_FATAL;
	}
	if (e->login.user[0] != '\0')
		return log_in(e, until);
	return make_headers(e, NULL);
}

void etcdrpc_close(struct etcd *e)
{
	transfer_close(&e->transfer);
	buffer_clear(&e->answer);
	curl_slist_free_all(e->headers);
	explicit_bzero(e->login.password, sizeof e->login.password);
}
