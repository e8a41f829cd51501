/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "locksmith/etcd/grpc.h"

#define CONNECTIONS 64
#define LONGEST_HEADERS ((size_t)64 * 1024)

/* The open sockets, and the server of each. */
static struct {
	curl_socket_t socket;
	const char *base; /* NULL: this entry is free */
} connections[CONNECTIONS];

/* the last call that may open a connection, whether or not it has done so yet */
static const struct grpc_call *opener;

static bool has_connection(const char *base)
{
	for (size_t i = 0; i < CONNECTIONS; i++)
		if (connections[i].base == base)
			return true;
	return opener != NULL && opener->base == base && opener->transfer.running;
}

static void forget_socket(curl_socket_t socket)
{
	for (size_t i = 0; i < CONNECTIONS; i++)
		if (connections[i].socket == socket)
			connections[i].base = NULL;
}

/* libcurl's callback for a new socket: note it, or refuse it to a call that must join a
 * connection.  Forget an old entry with the same number: libcurl 7.88 does not report that it
 * closes a socket that was never connected. */
static int note_socket(void *data, curl_socket_t socket, curlsocktype purpose)
{
	struct grpc_call *call = data;

	(void)purpose;
	forget_socket(socket);
	call->too_late = call->joins;
	for (size_t i = 0; i < CONNECTIONS && !call->joins; i++)
		if (connections[i].base == NULL) {
			connections[i].socket = socket;
			connections[i].base = call->base;
			return CURL_SOCKOPT_OK;
		}
	return CURL_SOCKOPT_ERROR;
}

static int close_socket(void *data, curl_socket_t socket)
{
	(void)data;
	forget_socket(socket);
	return close(socket);
}

/* If the header LINE begins with NAME, which ends in ": ", copy its value and return true. */
static bool is_header(const char *line, size_t size, const char *name, char *value, size_t room)
{
	size_t length = strlen(name);

	if (size < length || strncasecmp(line, name, length) != 0)
		return false;
	snprintf(value, room, "%.*s", (int)(size - length), line + length);
	value[strcspn(value, "\r\n")] = '\0';
	return true;
}

/* gRPC: a status that is no number is UNKNOWN. */
static int grpc_status(const char *text)
{
	char *end;
	long status = strtol(text, &end, 10);

	return end > text && *end == '\0' && status >= 0 && status < 100 ? (int)status
	                                                                 : GRPC_UNKNOWN;
}

/* gRPC's status comes after the messages, or with the headers if there are no messages. */
static size_t receive_header(char *line, size_t one, size_t size, void *data)
{
	struct grpc_call *call = data;
	char value[600], *plain;

	size *= one;
	call->headers_size += size;
	if (call->headers_size > LONGEST_HEADERS) /* a server may send headers forever */
		return 0;
	/* ignore the status that ends a stream: from etcd's grpc-proxy it is always "context
	 * canceled" */
	if (call->answered)
		return size;
	if (is_header(line, size, "grpc-status: ", value, sizeof value))
		call->status = grpc_status(value);
	if (is_header(line, size, "grpc-message: ", value, sizeof value)) {
		plain = curl_easy_unescape(call->transfer.easy, value, 0, NULL);
		snprintf(call->message, sizeof call->message, "%.199s",
		    plain != NULL ? plain : value);
		curl_free(plain);
	}
	return size;
}

static struct protobuf received(const struct grpc_call *call)
{
	const unsigned char *bytes = (const unsigned char *)call->received.bytes;

	return (struct protobuf){bytes, bytes + call->received.used};
}

static size_t receive(char *bytes, size_t one, size_t size, void *data)
{
	struct grpc_call *call = data;
	struct protobuf rest, message;
	bool complete, refused;

	size *= one;
	if (buffer_add(&call->received, bytes, size) != 0)
		return 0;
	rest = received(call);
	if (call->hear == NULL) {
		complete = protobuf_unwrap(&rest, &message);
		if (complete && call->stream && !call->answered) {
			call->answered = true;
			call->status = GRPC_OK;
			/* let send_stream() end the request, which ends the call */
			curl_easy_pause(call->transfer.easy, CURLPAUSE_CONT);
		}
		/* An answer is one message: refuse any bytes after it. */
		refused = complete ? rest.at != rest.end
		                   : !protobuf_may_unwrap(rest, call->received.limit);
		return refused ? 0 : size;
	}
	while (protobuf_unwrap(&rest, &message))
		call->hear(call->data, message);
	/* Refuse a stream beyond the limit: the caller ends a watch at its first event, so etcd
	 * never sends as much. */
	call->heard += size;
	refused =
	    call->heard > call->received.limit || !protobuf_may_unwrap(rest, call->received.limit);
	call->received.used = (size_t)(rest.end - rest.at);
	memmove(call->received.bytes, rest.at, call->received.used);
	return refused ? 0 : size;
}

/* libcurl's read callback: send a stream's request, and keep it open until the answer has come. */
static size_t send_stream(char *room, size_t one, size_t size, void *data)
{
	struct grpc_call *call = data;
	size_t left = call->request.used - call->sent;

	if (left == 0)
		return call->answered ? 0 : CURL_READFUNC_PAUSE;
	if (left > one * size)
		left = one * size;
	memcpy(room, call->request.bytes + call->sent, left);
	call->sent += left;
	return left;
}

/* libcurl's seek callback: libcurl will send the request again.  Without this callback libcurl 8.14
 * frees the connection, which other calls use. */
static int rewind_stream(void *data, curl_off_t offset, int origin)
{
	struct grpc_call *call = data;

	(void)offset;
	(void)origin;
	call->sent = 0;
	return CURL_SEEKFUNC_OK;
}

int grpc_open(struct grpc_call *call, size_t limit)
{
	CURL *easy;

	*call = (struct grpc_call){.status = GRPC_NONE,
	    .received.limit = limit,
	    .request.limit = PROTOBUF_LONGEST};
	if (transfer_open(&call->transfer) != 0)
		return -1;
	easy = call->transfer.easy;
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_POST, 1L);
	curl_easy_setopt(easy, CURLOPT_READFUNCTION, send_stream);
	curl_easy_setopt(easy, CURLOPT_READDATA, call);
	curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, rewind_stream);
	curl_easy_setopt(easy, CURLOPT_SEEKDATA, call);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, receive_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
	curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, note_socket);
	curl_easy_setopt(easy, CURLOPT_SOCKOPTDATA, call);
	curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
	/* All calls to a server share a connection, even one that is still being made. */
	curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
	/* A watch may be silent for hours: TCP keepalives show if the connection is lost. */
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 15L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 5L);
	return 0;
}

void grpc_prepare(struct grpc_call *call, const char *base, const char *method, const char *token,
    struct protobuf_out *request)
{
	char text[2100];

	call->base = base;
	protobuf_finish(request);
	snprintf(text, sizeof text, "%s%s", base, method);
	curl_easy_setopt(call->transfer.easy, CURLOPT_URL, text);
	buffer_clear(&call->request);
	buffer_add(&call->request, (const char *)request->bytes, request->used);
	curl_easy_setopt(call->transfer.easy, CURLOPT_POSTFIELDSIZE,
	    call->stream ? -1L : (long)call->request.used);
	curl_easy_setopt(call->transfer.easy, CURLOPT_POSTFIELDS,
	    call->stream ? NULL : call->request.bytes);
	curl_slist_free_all(call->headers);
	call->headers = curl_slist_append(NULL, "Content-Type: application/grpc");
	call->headers = curl_slist_append(call->headers, "TE: trailers");
	if (token[0] != '\0') {
		snprintf(text, sizeof text, "Token: %s", token);
		call->headers = curl_slist_append(call->headers, text);
	}
	curl_easy_setopt(call->transfer.easy, CURLOPT_HTTPHEADER, call->headers);
}

/* Reset CALL for a new try.  Without TLS, a call begins HTTP/2 at once (PRIOR_KNOWLEDGE).  libcurl
 * 7.88 (Debian 12) does so even on a connection that uses HTTP/2 already, and the call fails.  So,
 * with that libcurl, a call that MAY_JOIN a connection goes without PRIOR_KNOWLEDGE.  Such a call
 * must not open a connection, which would begin with HTTP/1.1: note_socket() refuses it.  If the
 * existing connection has gone, grpc_run() makes the call again. */
static void make_ready(struct grpc_call *call, bool may_join)
{
	bool tls = strncmp(call->base, "https:", 6) == 0;
	bool begins_twice = curl_version_info(CURLVERSION_NOW)->version_num >> 8 == 0x0758;

	buffer_clear(&call->received);
	call->status = GRPC_NONE;
	call->message[0] = '\0';
	call->joins = may_join && begins_twice && !tls && has_connection(call->base);
	call->too_late = false;
	call->sent = 0;
	call->headers_size = call->heard = 0;
	call->answered = false;
	curl_easy_setopt(call->transfer.easy, CURLOPT_HTTP_VERSION,
	    (long)(tls           ? CURL_HTTP_VERSION_2TLS
		   : call->joins ? CURL_HTTP_VERSION_2_0
				 : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE));
	if (!call->joins)
		opener = call;
}

void grpc_start(struct grpc_call *call)
{
	make_ready(call, true);
	transfer_start(&call->transfer);
}

static void run_once(struct grpc_call *call, bool may_join, int64_t limit, int64_t until,
    const bool *abort)
{
	make_ready(call, may_join);
	transfer_start(&call->transfer);
	transfer_drive(&call->transfer, limit, until, abort);
	transfer_cut(&call->transfer);
}

void grpc_run(struct grpc_call *call, int64_t limit, int64_t until, const bool *abort)
{
	run_once(call, true, limit, until, abort);
	if (call->too_late)
		run_once(call, false, limit, until, abort);
	/* No answer came.  Shut the connections down: otherwise libcurl would make the next calls
	 * on them, too. */
	if (!call->transfer.ended && !(abort != NULL && *abort))
		for (size_t i = 0; i < CONNECTIONS; i++)
			if (connections[i].base == call->base)
				shutdown(connections[i].socket, SHUT_RDWR);
}

/* Has receive() refused the body of a server that speaks no gRPC? */
static bool refused_page(const struct grpc_call *call)
{
	const char *type = NULL;

	curl_easy_getinfo(call->transfer.easy, CURLINFO_CONTENT_TYPE, &type);
	return call->transfer.result == CURLE_WRITE_ERROR &&
	       (type == NULL || strncmp(type, "application/grpc", 16) != 0);
}

int grpc_http(const struct grpc_call *call)
{
	long status = 0;

	if (call->transfer.ended && (call->transfer.result == CURLE_OK || refused_page(call)))
		curl_easy_getinfo(call->transfer.easy, CURLINFO_RESPONSE_CODE, &status);
	return (int)status;
}

bool grpc_answer(const struct grpc_call *call, struct protobuf *message)
{
	struct protobuf rest = received(call);

	return call->transfer.ended && call->transfer.result == CURLE_OK &&
	       call->status == GRPC_OK && protobuf_unwrap(&rest, message) &&
	       protobuf_whole(*message);
}

void grpc_close(struct grpc_call *call)
{
	transfer_close(&call->transfer);
	buffer_clear(&call->request);
	buffer_clear(&call->received);
	curl_slist_free_all(call->headers);
	if (opener == call)
		opener = NULL;
	*call = (struct grpc_call){.status = GRPC_NONE};
}
