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
	bool joins;    /* with libcurl 7.88: the call must use a connection that is open already */
	bool too_late; /* JOINS, but the connection had gone */
	/* the request stays open until a message has come, or, if HEAR is set, until
	 * grpc_close() */
	bool stream;
	bool answered; /* the message that a stream waits for has come */
	struct buffer request;
	size_t sent; /* bytes of a stream's request that were sent */
	struct curl_slist *headers;
	struct buffer received;
	/* bytes received so far: of headers, and of a stream with HEAR */
	size_t headers_size, heard;
	int status;        /* enum grpc_status, or another number of gRPC's */
	char message[200]; /* the server's message; "" if it sent none */
	/* called with each message as it comes; NULL: messages are kept */
	void (*hear)(void *data, struct protobuf message);
	void *data;
};

/* Prepare CALL, which receives at most LIMIT bytes.  Returns 0, or -1 (no memory).  CALL must stay
 * at its address until grpc_close(). */
int grpc_open(struct grpc_call *call, size_t limit);

/* Set what CALL sends, and where.  BASE is http[s]://HOST:PORT, and must stay at its address until
 * the program ends.  METHOD is "/package.Service/Method".  TOKEN is what the login gave, or "".
 * Keeps a copy of REQUEST.  The caller has set call->stream. */
void grpc_prepare(struct grpc_call *call, const char *base, const char *method, const char *token,
    struct protobuf_out *request);

/* Start the prepared call in the background.  It proceeds while other calls run or wait. */
void grpc_start(struct grpc_call *call);

/* Make the prepared call.  Returns when its answer has come, after LIMIT ns (as transfer_drive()
 * counts them), at the moment UNTIL, or when *ABORT is set (NULL: never).  If no answer comes in
 * time, shuts down all connections to call->base, which ends all calls on them. */
void grpc_run(struct grpc_call *call, int64_t limit, int64_t until, const bool *abort);

/* The HTTP status of the answer; 0: there was no answer. */
int grpc_http(const struct grpc_call *call);

/* Set *MESSAGE to the answer of a call that has ended with GRPC_OK.  It is valid until CALL is used
 * again.  Returns false if there is no whole message. */
bool grpc_answer(const struct grpc_call *call, struct protobuf *message);

/* End CALL if it runs, and free its memory.  Does nothing if CALL was never opened. */
void grpc_close(struct grpc_call *call);

#endif
