/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/etcd/etcdrpc.h"

#include "locksmith/common/clock.h"
#include "locksmith/etcd/etcdctl.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define LONGEST_ANSWER ((size_t)4 * 1024 * 1024)
#define NO_MESSAGE "the answer is no gRPC message, or is too long"
#define PAUSE (150 * NS_PER_MS) /* when all endpoints have been tried */

enum login_field { LOGIN_NAME = 1, LOGIN_PASSWORD = 2, LOGIN_TOKEN = 2 }; /* of the request, and of the response */

static enum etcd_reply log_in(struct etcd *e, int64_t until);

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
	failure_fill(&e->failure, EXIT_UNAVAILABLE, e->away, "%s", all);
	return ETCD_SILENT;
}

/* Sets the failure that etcd's error means. */
static enum etcd_reply refusal_reply(struct etcd *e)
{
	const char *text = e->call.message;
	char number[60];

	if (text[0] == '\0') {
		snprintf(number, sizeof number, "an error without a message (gRPC status %d)", e->call.status);
		text = number;
	}
	if (strstr(text, "lease not found") != NULL) {
		failure_set(&e->failure, EXIT_UNAVAILABLE, "%s", text);
		return ETCD_GONE;
	}
	if (strstr(text, "authentication") != NULL || strstr(text, "user name") != NULL)
		return etcd_fatal(e, EXIT_NOTPERMITTED, text);
	/* The store is full: every member refuses until an administrator makes room; with -w the call is
	   repeated. */
	if (strstr(text, "space exceeded") != NULL) {
		failure_away(&e->failure, "%s", text);
		return ETCD_FATAL;
	}
	switch (e->call.status) {
	case GRPC_DENIED:
		failure_set(&e->failure, EXIT_NOTPERMITTED,
		    "%s: the user needs a role with this: etcdctl role grant-permission ROLE "
		    "readwrite --prefix=true '%s'", text, e->url->path);
		return ETCD_FATAL;
	case GRPC_INVALID_ARGUMENT:
	case GRPC_NOT_FOUND:
	case GRPC_FAILED_PRECONDITION:
	case GRPC_OUT_OF_RANGE:
	case GRPC_UNIMPLEMENTED:
	case GRPC_UNAUTHENTICATED:
		return etcd_fatal(e, EXIT_UNAVAILABLE, text);
	}
	/* No leader, timed out, overloaded: try the next endpoint, or the same one later. */
	return etcd_failure(e, text, true);
}

/* An answer without gRPC. A proxy answers 502 to 504 if its server is unreachable, and 429 to too many
   requests. */
static enum etcd_reply foreign_reply(struct etcd *e, int http)
{
	char line[sizeof e->failed[0]];

	snprintf(line, sizeof line, "HTTP %d without gRPC: this is no etcd, or a proxy before it passes no gRPC (HTTP/2) on", http);
	return etcd_failure(e, line, http == 429 || (http >= 502 && http <= 504));
}

/* The connection was made, and ended. */
static bool was_ended(CURLcode result)
{
	return result == CURLE_GOT_NOTHING || result == CURLE_RECV_ERROR || result == CURLE_SEND_ERROR ||
	       result == CURLE_HTTP2 || result == CURLE_HTTP2_STREAM || result == CURLE_PARTIAL_FILE ||
	       result == CURLE_WEIRD_SERVER_REPLY;
}

/* No answer came. A TLS error is no temporary one. */
static enum etcd_reply no_answer(struct etcd *e)
{
	const struct transfer *t = &e->call.transfer;
	CURLcode result = t->ended ? t->result : CURLE_OPERATION_TIMEDOUT;
	const char *error = t->error;
	char line[sizeof e->failed[0]];

	if (result == CURLE_WRITE_ERROR)
		error = NO_MESSAGE;
	if (was_ended(result) && !e->reached && strncmp(e->base[0], "http:", 5) == 0)
		error = "the connection was ended without an answer: the server has no gRPC (HTTP/2), "
			"or wants TLS: say etcds://";
	if (result == CURLE_SSL_CONNECT_ERROR) {
		snprintf(line, sizeof line, "%.60s (without TLS: etcd://)", error);
		error = line;
	}
	return etcd_failure(e, error,
	    result != CURLE_WRITE_ERROR && result != CURLE_SSL_CONNECT_ERROR &&
		result != CURLE_PEER_FAILED_VERIFICATION && result != CURLE_SSL_CACERT_BADFILE &&
		result != CURLE_SSL_CERTPROBLEM);
}

/* True for the first keepalive that etcd's grpc-proxy has ended together with its request, before it has asked etcd.
   There the request stays open from now on; etcd itself has less to do if the request ends at once. */
static bool found_proxy(struct etcd *e, const char *method)
{
	bool found = !e->proxy && strcmp(method, ETCD_KEEPALIVE) == 0 &&
		     strstr(e->call.message, "context canceled") != NULL;

	e->proxy = e->proxy || found;
	return found;
}

/* One endpoint, once. */
static enum etcd_reply ask_endpoint(struct etcd *e, const char *method, struct pb_out *request, int64_t until)
{
	int http;

	etcdrpc_prepare(e, &e->call, method, request);
	e->sent++;
	grpc_run(&e->call, until, e->abort);
	http = grpc_http(&e->call);
	if (http == 0)
		return no_answer(e);
	if (e->call.status == GRPC_NONE)
		return foreign_reply(e, http);
	if (e->call.status == GRPC_OK && !grpc_answer(&e->call, &e->answer))
		return etcd_failure(e, NO_MESSAGE, false);
	e->reached = true;
	if (found_proxy(e, method))
		return ask_endpoint(e, method, request, until);
	return e->call.status == GRPC_OK ? ETCD_OK : refusal_reply(e);
}

/* A login lapses with a restart of the server, or after some minutes without use; one that was not answered leaves
   none. */
static bool must_log_in(const struct etcd *e)
{
	if (e->login.user[0] == '\0')
		return false;
	return e->call.status == GRPC_UNAUTHENTICATED || strstr(e->call.message, "invalid auth token") != NULL ||
	       strstr(e->call.message, "revision of auth store is old") != NULL ||
	       strstr(e->call.message, "user name is empty") != NULL;
}

static enum etcd_reply ask_all(struct etcd *e, const char *method, struct pb_out *request, int64_t until)
{
	bool may_log_in = strcmp(method, ETCD_LOGIN) != 0;
	enum etcd_reply reply;

	e->answer = (struct pb){NULL, NULL};
	e->sent = 0;
	e->away = false;
	memset(e->failed, 0, sizeof e->failed);
	for (unsigned int tries = 1;; tries++) {
		reply = ask_endpoint(e, method, request,
		    clock_min(until, clock_boottime() + (e->reached ? e->endpoint_timeout : e->first_timeout)));
		if (reply != ETCD_OK && may_log_in && must_log_in(e)) {
			may_log_in = false;
			reply = log_in(e, until);
			if (reply != ETCD_OK)
				return reply;
			continue;
		}
		if (reply != ETCD_SILENT || (e->abort != NULL && *e->abort))
			return reply;
		etcdrpc_rotate(e);
		if (tries % e->url->hosts == 0) {
			/* No endpoint ever answered: a wrong address, most likely. */
			if (!e->reached)
				return ETCD_FATAL;
			transfer_pause(clock_min(until, clock_boottime() + PAUSE));
		}
		if (clock_boottime() >= until)
			return ETCD_SILENT;
	}
}

struct pb_out *etcdrpc_begin(struct etcd *e)
{
	pb_start(&e->request);
	return &e->request;
}

enum etcd_reply etcdrpc_call(struct etcd *e, const char *method, int64_t until)
{
	return ask_all(e, method, &e->request, until);
}

void etcdrpc_prepare(struct etcd *e, struct grpc_call *c, const char *method, struct pb_out *request)
{
	c->stream = strcmp(method, ETCD_WATCH) == 0 || (e->proxy && strcmp(method, ETCD_KEEPALIVE) == 0);
	grpc_prepare(c, e->base[e->current], method, e->token, request);
}

void etcdrpc_rotate(struct etcd *e)
{
	e->current = (e->current + 1) % e->url->hosts;
}

static enum etcd_reply log_in(struct etcd *e, int64_t until)
{
	unsigned int sent = e->sent;
	enum etcd_reply reply;
	struct pb_out request; /* the other one is that of the call which needs the login */

	pb_start(&request);
	pb_text(&request, LOGIN_NAME, e->login.user);
	pb_text(&request, LOGIN_PASSWORD, e->login.password);
	e->token[0] = '\0';
	reply = ask_all(e, ETCD_LOGIN, &request, until);
	explicit_bzero(request.bytes, request.used);
	e->sent = sent;
	/* As etcdctl does: a server without authentication needs no user, until it is enabled. */
	if (reply != ETCD_OK && strstr(e->failure.text, "authentication is not enabled") != NULL)
		return ETCD_OK;
	if (reply != ETCD_OK)
		return reply;
	pb_string(pb_bytes(e->answer, LOGIN_TOKEN, 0), e->token, sizeof e->token);
	/* A header that this program makes must stay one line. */
	if (e->token[0] == '\0' || strlen(e->token) == sizeof e->token - 1 || strpbrk(e->token, "\r\n") != NULL)
		return etcd_fatal(e, EXIT_NOTPERMITTED, "the login gave no token");
	return ETCD_OK;
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
	    .token = ""};
	make_endpoints(e);
	if (!grpc_possible())
		return etcd_fatal(e, EXIT_UNAVAILABLE, "this libcurl has no HTTP/2, in which etcd's gRPC comes");
	if (grpc_open(&e->call, LONGEST_ANSWER) != 0)
		return etcd_fatal(e, EXIT_INTERNAL, "out of memory");
	if (etcdctl_login(url, &e->login, &e->failure) != 0)
		return ETCD_FATAL;
	if (e->login.user[0] != '\0' && !e->login.has_password) {
		failure_set(&e->failure, EXIT_NOTPERMITTED,
		    "no password for %s at %.100s: set ETCDCTL_PASSWORD or SEMLOCK_PASSWORD",
		    e->login.user, url->host[0]);
		return ETCD_FATAL;
	}
	if (e->login.user[0] != '\0')
		return log_in(e, until);
	return ETCD_OK;
}

void etcdrpc_close(struct etcd *e)
{
	grpc_close(&e->call);
	explicit_bzero(e->login.password, sizeof e->login.password);
}
