/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "locksmith/common/loop.h"
#include "locksmith/etcd/etcd_rpc.h"

#define LONGEST_ANSWER ((size_t)4 * 1024 * 1024)
#define LONGEST_EVENT ((size_t)1024 * 1024)
#define NO_MESSAGE "the answer is no gRPC message, or is too long"
#define PAUSE (150 * MILLISECOND) /* the pause after all endpoints have been tried */
#define MOST_ALONE (15 * SECOND)
#define ANSWER_SPREAD 4 /* the next answer may take this many times as long as the last one */

/* The numbers of fields in etcd's messages: its rpc.proto and kv.proto. */
enum watch_request { CREATE = 1, WATCH_KEY = 1, WATCH_END = 2, WATCH_SINCE = 3, WATCH_FILTER = 5 };
enum watch_filter { NO_PUT = 0 };
enum watch_response { WATCH_CANCELED = 4, WATCH_EVENT = 11 };
enum event { EVENT_TYPE = 1, DELETED = 1 };
/* the token is a field of the response; the others are of the request */
enum login_field { LOGIN_NAME = 1, LOGIN_PASSWORD = 2, LOGIN_TOKEN = 2 };

static enum etcd_reply log_in(struct etcd_rpc *rpc, int64_t until);

/* The call to the current endpoint failed, because of TEXT.  Fill rpc->error with the failures of
 * all endpoints.  MENDS: another try may succeed. */
static enum etcd_reply etcd_failure(struct etcd_rpc *rpc, const char *text, bool mends)
{
	char all[sizeof rpc->error.text] = "";
	size_t used = 0;

	snprintf(rpc->failed[rpc->current], sizeof rpc->failed[0], "%s", text);
	rpc->away = rpc->away || mends;
	if (!rpc->call.transfer.ended) {
		rpc->connected = rpc->connected || rpc->call.transfer.connected;
		/* A server whose connection queue is full is as silent as one that does not exist:
		 * an earlier connection shows that it exists. */
		rpc->slow = rpc->slow || rpc->connected || rpc->call.transfer.late;
	}
	for (unsigned int i = 0; i < rpc->url->hosts && used < sizeof all; i++)
		if (rpc->failed[i][0] != '\0')
			used += (size_t)snprintf(all + used, sizeof all - used, "%s%s%s%s",
			    used > 0 ? "; " : "", rpc->url->hosts > 1 ? rpc->url->host[i] : "",
			    rpc->url->hosts > 1 ? ": " : "", rpc->failed[i]);
	error_plain(&rpc->error,
	    rpc->slow   ? ERROR_SLOW
	    : rpc->away ? ERROR_AWAY
			: ERROR_UNAVAILABLE,
	    "%s", all);
	return ETCD_SILENT;
}

/* What a message of etcd's means.  gRPC's status alone tells few of these apart. */
enum meaning {
	MEANS_NO_MORE, /* the message says no more than gRPC's status */
	NO_LEASE,
	NEEDS_LOGIN,
	LOGIN_LAPSED,
	NO_LOGINS, /* the server has no users: a login is not needed */
	LOGIN_REFUSED,
	NO_SPACE, /* until an administrator makes room */
	REQUEST_ENDED
};

/* Parts of etcd's messages (rpctypes/error.go).  The first that the message contains decides. */
static const struct {
	const char *part;
	enum meaning meaning;
} messages[] = {
    {"lease not found", NO_LEASE},
    {"user name is empty", NEEDS_LOGIN},
    {"invalid auth token", LOGIN_LAPSED},
    {"revision of auth store is old", LOGIN_LAPSED},
    {"authentication is not enabled", NO_LOGINS},
    {"authentication", LOGIN_REFUSED},
    {"user name", LOGIN_REFUSED},
    {"space exceeded", NO_SPACE},
    {"context canceled", REQUEST_ENDED},
};

static enum meaning meaning_of(const struct grpc_call *call)
{
	for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
		if (strstr(call->message, messages[i].part) != NULL)
			return messages[i].meaning;
	return MEANS_NO_MORE;
}

/* TIME was too short for an answer: let the next one take twice as long. */
static void be_more_patient(struct etcd_rpc *rpc, int64_t time)
{
	int64_t doubled = 2 * later(time, SECOND / 2);

	rpc->patience = later(rpc->patience, earlier(doubled, rpc->timeouts.most_silent));
}

/* Fill rpc->error from etcd's refusal. */
static enum etcd_reply refusal_reply(struct etcd_rpc *rpc)
{
	const char *text = rpc->call.message;
	char number[60];

	if (text[0] == '\0') {
		snprintf(number, sizeof number, "an error without a message (gRPC status %d)",
		    rpc->call.status);
		text = number;
	}
	switch (meaning_of(&rpc->call)) {
	case NO_LEASE:
		error_plain(&rpc->error, ERROR_UNAVAILABLE, "%s", text);
		return ETCD_GONE;
	case NEEDS_LOGIN:
		if (rpc->login.user[0] == '\0')
			return error_plain(&rpc->error, ERROR_PERMISSION,
			    "the server wants a login: set ETCDCTL_USER=USER:PASSWORD, or "
			    "SEMLOCK_USER and SEMLOCK_PASSWORD");
		return error_plain(&rpc->error, ERROR_PERMISSION, "%s", text);
	case NO_LOGINS:
	case LOGIN_REFUSED:
		return error_plain(&rpc->error, ERROR_PERMISSION, "%s", text);
	case NO_SPACE: /* do not ask another member: all share the alarm */
		error_plain(&rpc->error, ERROR_AWAY, "%s", text);
		return ETCD_FULL;
	case LOGIN_LAPSED:
	case REQUEST_ENDED:
	case MEANS_NO_MORE:
		break;
	}
	switch (rpc->call.status) {
	case GRPC_DENIED:
		return error_plain(&rpc->error, ERROR_PERMISSION,
		    "%s: the user needs a role with this: etcdctl role grant-permission ROLE "
		    "readwrite --prefix=true '%s/'",
		    text, rpc->url->path);
	case GRPC_INVALID_ARGUMENT:
	case GRPC_NOT_FOUND:
	case GRPC_FAILED_PRECONDITION:
	case GRPC_OUT_OF_RANGE:
	case GRPC_UNIMPLEMENTED:
	case GRPC_UNAUTHENTICATED:
		return error_plain(&rpc->error, ERROR_UNAVAILABLE, "%s", text);
	}
	/* No leader, timed out, overloaded: try the next endpoint, or the same one later. */
	be_more_patient(rpc, rpc->patience);
	return etcd_failure(rpc, text, true);
}

/* An answer without gRPC.  A proxy answers 502 to 504 if its server is unreachable, and 429 to too
 * many requests. */
static enum etcd_reply foreign_reply(struct etcd_rpc *rpc, int http)
{
	char line[sizeof rpc->failed[0]];

	snprintf(line, sizeof line,
	    "HTTP %d without gRPC: no etcd, or a proxy that does not reach it by gRPC (HTTP/2)",
	    http);
	return etcd_failure(rpc, line, http == 429 || (http >= 502 && http <= 504));
}

/* Was a connection made, and then ended? */
static bool was_ended(CURLcode result)
{
	return result == CURLE_GOT_NOTHING || result == CURLE_RECV_ERROR ||
	       result == CURLE_SEND_ERROR || result == CURLE_HTTP2 ||
	       result == CURLE_HTTP2_STREAM || result == CURLE_PARTIAL_FILE ||
	       result == CURLE_WEIRD_SERVER_REPLY;
}

/* Guess why the first connection ended, because libcurl's ERROR says little more than that it did.
 * With TLS 1.3, a server checks a client's certificate after the handshake, and the connection may
 * end before we read the server's alert. */
static const char *why_ended(const struct etcd_rpc *rpc, const char *error)
{
	if (strncmp(rpc->base[0], "http:", 5) == 0)
		return "the connection was ended without an answer: it was cut, or the server "
		       "wants TLS (etcds://), "
		       "or has no gRPC (HTTP/2)";
	if (strstr(error, "alert") != NULL)
		return error;
	return "the connection was ended without an answer: it was cut, or the server wants "
	       "another certificate (SEMLOCK_CERT, SEMLOCK_KEY)";
}

/* Note why no answer came.  A TLS error is permanent. */
static void no_answer(struct etcd_rpc *rpc)
{
	const struct transfer *transfer = &rpc->call.transfer;
	CURLcode result = transfer->ended ? transfer->result : CURLE_OPERATION_TIMEDOUT;
	const char *error = transfer->error;
	char line[sizeof rpc->failed[0]];

	if (result == CURLE_WRITE_ERROR)
		error = NO_MESSAGE;
	if (was_ended(result) && !rpc->reached)
		error = why_ended(rpc, error);
	/* The last try may have been cut short because the time was up.  Then an earlier failure of
	 * the endpoint says more. */
	if (!transfer->ended && rpc->failed[rpc->current][0] != '\0') {
		memcpy(line, rpc->failed[rpc->current], sizeof line);
		error = line;
	}
	if (result == CURLE_SSL_CONNECT_ERROR) {
		snprintf(line, sizeof line, "%.60s (no TLS? use etcd://)", error);
		error = line;
	}
	etcd_failure(rpc, error,
	    result != CURLE_WRITE_ERROR && result != CURLE_SSL_CONNECT_ERROR &&
		result != CURLE_PEER_FAILED_VERIFICATION && result != CURLE_SSL_CACERT_BADFILE &&
		result != CURLE_SSL_CERTPROBLEM);
}

/* Does a keepalive's answer show that the endpoint is etcd's grpc-proxy?  The proxy breaks a
 * keepalive off, before it asks etcd, when the request ends.  So set rpc->proxy, which keeps such
 * requests open from now on.  With etcd itself they end at once, which is less work for etcd.
 * Returns true only the first time. */
static bool found_proxy(struct etcd_rpc *rpc, const char *method)
{
	bool found = !rpc->proxy && strcmp(method, ETCD_KEEPALIVE) == 0 &&
	             meaning_of(&rpc->call) == REQUEST_ENDED;

	rpc->proxy = rpc->proxy || found;
	return found;
}

/* Prepare a call to the endpoint that is asked first. */
static void prepare(const struct etcd_rpc *rpc, struct grpc_call *call, const char *method,
    struct protobuf_out *request)
{
	call->stream =
	    strcmp(method, ETCD_WATCH) == 0 || (rpc->proxy && strcmp(method, ETCD_KEEPALIVE) == 0);
	grpc_prepare(call, rpc->base[rpc->current], method, rpc->token, request);
}

/* How long the endpoint may take to answer, if the whole call has TIME.  A single endpoint gets
 * half of TIME, within bounds, so that the rest is left for a try over another connection. */
static int64_t answer_limit(const struct etcd_rpc *rpc, int64_t time)
{
	int64_t limit = rpc->reached ? rpc->timeouts.usual : rpc->timeouts.first;

	return later(later(limit, rpc->patience),
	    rpc->url->hosts == 1 ? earlier(time / 2, MOST_ALONE) : 0);
}

/* Ask one endpoint; twice if it proves to be a proxy. */
static enum etcd_reply ask_endpoint(struct etcd_rpc *rpc, const char *method,
    struct protobuf_out *request, int64_t until)
{
	int64_t began = clock_boottime(), limit = answer_limit(rpc, until - began);
	int http;

	prepare(rpc, &rpc->call, method, request);
	grpc_run(&rpc->call, limit, until, rpc->abort);
	http = grpc_http(&rpc->call);
	if (http == 0) {
		no_answer(rpc);
		if (rpc->connected && clock_boottime() - began >= limit)
			be_more_patient(rpc, limit);
		return ETCD_SILENT;
	}
	if (rpc->call.status == GRPC_NONE)
		return foreign_reply(rpc, http);
	if (rpc->call.status == GRPC_OK && !grpc_answer(&rpc->call, &rpc->answer))
		return etcd_failure(rpc, NO_MESSAGE, false);
	rpc->connected = rpc->reached = true;
	if (found_proxy(rpc, method))
		return ask_endpoint(rpc, method, request, until);
	if (rpc->call.status != GRPC_OK)
		return refusal_reply(rpc);
	/* after a quick answer, only halve the patience: the next answer may be slow again */
	rpc->patience =
	    earlier(later(ANSWER_SPREAD * (clock_boottime() - began), rpc->patience / 2),
		rpc->timeouts.most);
	return ETCD_OK;
}

/* Must we log in, or log in again?  A login lapses when the server restarts, or after some minutes
 * without use. */
static bool must_log_in(const struct etcd_rpc *rpc)
{
	enum meaning meaning = meaning_of(&rpc->call);

	if (rpc->login.user[0] == '\0')
		return false;
	return rpc->call.status == GRPC_UNAUTHENTICATED || meaning == LOGIN_LAPSED ||
	       meaning == NEEDS_LOGIN;
}

/* How long to wait before all endpoints are asked again: the slower they are, the longer. */
static int64_t pause_of(const struct etcd_rpc *rpc)
{
	return later(rpc->patience / 4, PAUSE);
}

static enum etcd_reply ask_all(struct etcd_rpc *rpc, const char *method,
    struct protobuf_out *request, int64_t until)
{
	bool may_log_in = strcmp(method, ETCD_LOGIN) != 0;
	enum etcd_reply reply;

	rpc->answer = (struct protobuf){NULL, NULL};
	rpc->away = rpc->slow = rpc->unsure = false;
	memset(rpc->failed, 0, sizeof rpc->failed);
	for (unsigned int tries = 1;; tries++) {
		reply = ask_endpoint(rpc, method, request, until);
		if (reply != ETCD_OK && may_log_in && must_log_in(rpc)) {
			may_log_in = false;
			reply = log_in(rpc, until);
			if (reply != ETCD_OK)
				return reply;
			continue;
		}
		if (reply != ETCD_SILENT)
			return reply;
		rpc->unsure = true;
		if (rpc->abort != NULL && *rpc->abort)
			return reply;
		etcd_rpc_rotate(rpc);
		if (tries % rpc->url->hosts == 0) {
			/* no endpoint was ever reached: most likely the address is wrong */
			if (!rpc->connected && !rpc->slow)
				return ETCD_FATAL;
			transfer_pause(earlier(until, clock_boottime() + spread(pause_of(rpc))));
		}
		if (clock_boottime() >= until)
			return ETCD_SILENT;
	}
}

struct protobuf_out *etcd_rpc_begin(struct etcd_rpc *rpc)
{
	protobuf_start(&rpc->request);
	return &rpc->request;
}

enum etcd_reply etcd_rpc_call(struct etcd_rpc *rpc, const char *method, int64_t until)
{
	return ask_all(rpc, method, &rpc->request, until);
}

void etcd_rpc_rotate(struct etcd_rpc *rpc)
{
	rpc->current = (rpc->current + 1) % rpc->url->hosts;
}

static enum etcd_reply log_in(struct etcd_rpc *rpc, int64_t until)
{
	/* not rpc->request: the call that needs the login still uses that */
	struct protobuf_out request;
	enum etcd_reply reply;

	protobuf_start(&request);
	protobuf_text(&request, LOGIN_NAME, rpc->login.user);
	protobuf_text(&request, LOGIN_PASSWORD, rpc->login.password);
	rpc->token[0] = '\0';
	reply = ask_all(rpc, ETCD_LOGIN, &request, until);
	explicit_bzero(request.bytes, request.used);
	/* Like etcdctl, go on without a login while the server has authentication disabled. */
	if (reply != ETCD_OK)
		return meaning_of(&rpc->call) == NO_LOGINS ? ETCD_OK : reply;
	protobuf_string(protobuf_bytes(rpc->answer, LOGIN_TOKEN, 0), rpc->token, sizeof rpc->token);
	/* The token becomes a header, which must stay one line. */
	if (rpc->token[0] == '\0' || strlen(rpc->token) == sizeof rpc->token - 1 ||
	    strpbrk(rpc->token, "\r\n") != NULL)
		return error_plain(&rpc->error, ERROR_PERMISSION, "the login gave no token");
	return ETCD_OK;
}

/* The value of the variable ETCDCTL_NAME, which etcdctl(1) reads, or else of SEMLOCK_NAME; NULL:
 * neither is set. */
static const char *variable_of(const char *name)
{
	static const char *const prefixes[] = {"ETCDCTL_", "SEMLOCK_"};
	const char *value = NULL;

	for (size_t i = 0; i < 2 && (value == NULL || value[0] == '\0'); i++) {
		char variable[40];

		snprintf(variable, sizeof variable, "%s%s", prefixes[i], name);
		value = getenv(variable);
	}
	return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Open CALL with the user's certificates.  Returns 0, or -1 (no memory). */
static int open_call(struct grpc_call *call, size_t limit)
{
	const char *cert = variable_of("CERT"), *key = variable_of("KEY");

	if (grpc_open(call, limit) != 0)
		return -1;
	transfer_trust(&call->transfer, variable_of("CACERT"));
	if (cert != NULL)
		curl_easy_setopt(call->transfer.easy, CURLOPT_SSLCERT, cert);
	if (key != NULL)
		curl_easy_setopt(call->transfer.easy, CURLOPT_SSLKEY, key);
	return 0;
}

/* Take the user and the password from VALUE, that of ETCDCTL_USER.  Ignore it if the URL names
 * another user, because the password is not that user's. */
static int take_user(const char *value, const struct url *url, struct login *login,
    struct error *error)
{
	size_t length = strcspn(value, ":");
	bool same = url->user[0] == '\0' ||
	            (strlen(url->user) == length && strncmp(url->user, value, length) == 0);

	if (length >= sizeof login->user || strlen(value) - length > sizeof login->password)
		return error_plain(error, ERROR_USAGE, "ETCDCTL_USER is too long");
	if (!same)
		return 0;
	snprintf(login->user, sizeof login->user, "%.*s", (int)length, value);
	if (value[length] == ':') {
		snprintf(login->password, sizeof login->password, "%s", value + length + 1);
		login->has_password = true;
	}
	return 0;
}

/* Like login_find(), but ETCDCTL_USER (USER[:PASSWORD]) and ETCDCTL_PASSWORD take precedence. */
static int find_login(const struct url *url, struct login *login, struct error *error)
{
	const char *user = getenv("ETCDCTL_USER"), *password = getenv("ETCDCTL_PASSWORD");

	if (login_find(url, login, error) != 0)
		return -1;
	if (password != NULL && strlen(password) >= sizeof login->password)
		return error_plain(error, ERROR_USAGE, "ETCDCTL_PASSWORD is too long");
	if (password != NULL) {
		snprintf(login->password, sizeof login->password, "%s", password);
		login->has_password = true;
	}
	return user != NULL ? take_user(user, url, login, error) : 0;
}

static void make_endpoints(struct etcd_rpc *rpc)
{
	bool tls = strcasecmp(rpc->url->scheme, "etcds") == 0;

	for (unsigned int i = 0; i < rpc->url->hosts; i++) {
		const char *host = rpc->url->host[i];
		const char *bracket = strrchr(host, ']');
		bool port = strchr(bracket != NULL ? bracket : host, ':') != NULL;

		snprintf(rpc->base[i], sizeof rpc->base[i], "http%s://%s%s", tls ? "s" : "", host,
		    port ? "" : ":2379");
	}
	/* Begin with an endpoint that depends on our PID, so that clients spread over the
	 * endpoints. */
	rpc->current = (unsigned int)getpid() % rpc->url->hosts;
}

enum etcd_reply etcd_rpc_open(struct etcd_rpc *rpc, const struct url *url, int64_t until)
{
	rpc->url = url;
	make_endpoints(rpc);
	if ((curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_HTTP2) == 0)
		return error_plain(&rpc->error, ERROR_UNAVAILABLE,
		    "this libcurl has no HTTP/2, which etcd's gRPC needs");
	if (open_call(&rpc->call, LONGEST_ANSWER) != 0)
		return error_plain(&rpc->error, ERROR_SYSTEM, "out of memory");
	if (find_login(url, &rpc->login, &rpc->error) != 0)
		return ETCD_FATAL;
	if (rpc->login.user[0] == '\0')
		return ETCD_OK;
	if (!rpc->login.has_password)
		return error_plain(&rpc->error, ERROR_PERMISSION,
		    "no password for %s at %.100s: set ETCDCTL_PASSWORD or SEMLOCK_PASSWORD",
		    rpc->login.user, url->host[0]);
	return log_in(rpc, until);
}

void etcd_rpc_close(struct etcd_rpc *rpc)
{
	grpc_close(&rpc->call);
	explicit_bzero(rpc->login.password, sizeof rpc->login.password);
}

static void watch_hear(void *data, struct protobuf message)
{
	struct etcd_watch *watch = data;
	struct protobuf_field field;

	watch->heard = true;
	watch->cancelled = watch->cancelled || !protobuf_whole(message) ||
	                   protobuf_number(message, WATCH_CANCELED) != 0;
	watch->event = watch->event || watch->cancelled;
	while (protobuf_next(&message, &field)) {
		if (field.number != WATCH_EVENT)
			continue;
		watch->event = true;
		if (protobuf_number(field.bytes, EVENT_TYPE) == DELETED)
			watch->deleted = true;
	}
}

void etcd_watch_start(struct etcd_watch *watch, struct etcd_rpc *rpc, const struct etcd_span *keys,
    bool puts, int64_t revision)
{
	struct protobuf_out request;
	size_t create;

	etcd_watch_stop(watch);
	watch->endpoint = rpc->current;
	strcpy(watch->key, keys->first);
	protobuf_start(&request);
	create = protobuf_open(&request, CREATE);
	protobuf_text(&request, WATCH_KEY, keys->first);
	protobuf_text(&request, WATCH_END, keys->end);
	protobuf_int(&request, WATCH_SINCE, revision);
	if (!puts)
		protobuf_int(&request, WATCH_FILTER, NO_PUT);
	protobuf_close(&request, create);
	if (open_call(&watch->call, LONGEST_EVENT) != 0)
		return;
	prepare(rpc, &watch->call, ETCD_WATCH, &request);
	watch->call.hear = watch_hear;
	watch->call.data = watch;
	curl_easy_setopt(watch->call.transfer.easy, CURLOPT_CONNECTTIMEOUT_MS,
	    (long)(answer_limit(rpc, 0) / MILLISECOND));
	grpc_start(&watch->call);
}

bool etcd_watch_over(const struct etcd_watch *watch)
{
	return watch->event || watch->call.transfer.easy == NULL || watch->call.transfer.ended;
}

void etcd_watch_stop(struct etcd_watch *watch)
{
	grpc_close(&watch->call);
	*watch = (struct etcd_watch){.deleted = false};
}
