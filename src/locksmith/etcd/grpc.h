/* SPDX-License-Identifier: MIT */
/* locksmith/etcd/grpc.h - gRPC calls over HTTP/2, by libcurl: one request each, and one message or
 * several back. */
#ifndef SEMLOCK_LOCKSMITH_ETCD_GRPC_H
#define SEMLOCK_LOCKSMITH_ETCD_GRPC_H

#include <stdbool.h>
#include <stdint.h>

#include "locksmith/curl/buffer.h"
#include "locksmith/curl/transfer.h"
#include "locksmith/etcd/protobuf.h"

enum grpc_status {
	GRPC_NONE = -1, /* no status came: no answer, or the server speaks no gRPC */
	GRPC_OK = 0,
	GRPC_UNKNOWN = 2,
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_NOT_FOUND = 5,
	GRPC_DENIED = 7,
	GRPC_FAILED_PRECONDITION = 9,
	GRPC_OUT_OF_RANGE = 11,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_UNAUTHENTICATED = 16
};

struct grpc_call {
	/* transfer.ended: the call is over; transfer.error: why there was no answer */
	struct transfer transfer;
	const char *base;
	bool joins;    /* libcurl 7.88: the call must use an existing connection, */
	bool too_late; /* but there was none any more */
	/* the request stays open until there is a message; with hear, until grpc_close */
	bool stream;
	bool answered; /* that message has come */
	struct buffer request;
	size_t sent; /* bytes of a stream's request */
	struct curl_slist *headers;
	struct buffer received;
	size_t headers_size, heard; /* bytes of headers, and of a stream that is heard, so far */
	int status;                 /* enum grpc_status, or another number of gRPC's */
	char message[200];          /* the server's message; "" if it sent none */
	/* called with each message as it comes; NULL: messages are kept */
	void (*hear)(void *data, struct protobuf message);
	void *data;
};

/* Prepare CALL, which receives at most LIMIT bytes.  Returns 0, or -1 (no memory).  CALL must stay
 * at its address until grpc_close(). */
int grpc_open(struct grpc_call *call, size_t limit);

/* Set what CALL sends, and where.  BASE is http[s]://HOST:PORT, and must stay at its address until
 * the program ends; METHOD is "/package.Service/Method"; TOKEN is what the login gave, or "".
 * Keeps a copy of REQUEST.  Set call->stream before. */
void grpc_prepare(struct grpc_call *call, const char *base, const char *method, const char *token,
    struct protobuf_out *request);

/* Begin what was prepared, in the background; the other calls drive it. */
void grpc_start(struct grpc_call *call);

/* Make the prepared call, and return when its answer is there, after LIMIT ns (as transfer_drive()
 * counts them), at the moment UNTIL, or when *abort is set (NULL: never).  If no answer comes in
 * time, it ends all connections to call->base, and so all calls on them. */
void grpc_run(struct grpc_call *call, int64_t limit, int64_t until, const bool *abort);

/* HTTP's status of a call; 0: there was no answer. */
int grpc_http(const struct grpc_call *call);

/* The message of a call that has ended with GRPC_OK; it is valid until the next one.  Returns
 * false: there is none. */
bool grpc_answer(const struct grpc_call *call, struct protobuf *message);

/* End the call if it runs, and free all of it; nothing happens to one that was never opened. */
void grpc_close(struct grpc_call *call);

#endif
