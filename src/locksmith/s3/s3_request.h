/* SPDX-License-Identifier: MIT */
/* locksmith/s3/s3_request.h - one signed request for one object of an S3 server. */
#ifndef SEMLOCK_LOCKSMITH_S3_S3_REQUEST_H
#define SEMLOCK_LOCKSMITH_S3_S3_REQUEST_H

#include <stdint.h>

#include "locksmith/curl/buffer.h"
#include "locksmith/curl/transfer.h"
#include "locksmith/s3/aws_login.h"
#include "report/error.h"

#define S3_ETAG 128 /* bytes; Amazon's take 35 */

enum s3_reply {
	S3_DONE,
	S3_SAME,    /* 304: the object still has the ETag that the request named */
	S3_ABSENT,  /* the object does not exist */
	S3_REFUSED, /* the condition is not true, and nothing was written */
	S3_UNKNOWN, /* no answer, 5xx, 429 ...: the request may have been done; error is filled */
	S3_FATAL    /* another try would end the same; error is filled */
};

struct s3_server {
	struct transfer transfer;
	const char *bucket;
	char url[2048]; /* of the object */
	char region[64];
	/* how many new connections the writes needed since the caller set this to 0 */
	long connects;
	int64_t clock_ahead; /* how many seconds the server's clock is ahead; 0: near enough */
	struct aws_login login;
	struct error error;

	/* The last answer. */
	struct buffer body;
	char etag[S3_ETAG]; /* as it came, with its quotes; "": none */
	int64_t date;       /* the server's clock then, in seconds since 1970; 0: it did not say */
	int64_t changed;    /* the object's last change, by the same clock; 0: it did not say */
};

/* Find out where the server is, and prepare requests for the object NAME in BUCKET.  The string
 * BUCKET must stay valid.  Returns 0, or -1 with server->error filled. */
int s3_open(struct s3_server *server, const char *bucket, const char *name);

/* Free what s3_open() has allocated, also if that has failed. */
void s3_close(struct s3_server *server);

/* Read the object, unless its ETag is still ETAG ("": whatever it is), at most until the moment
 * UNTIL: S3_DONE, with body, etag, date and changed; S3_SAME; S3_ABSENT, with date; S3_UNKNOWN;
 * S3_FATAL. */
enum s3_reply s3_get(struct s3_server *server, const char *etag, int64_t until);

/* Make TEXT the object's contents if CONDITION, "If-Match: ETAG" or "If-None-Match: *", is true, at
 * most until the moment UNTIL: S3_DONE, with etag; S3_REFUSED; S3_UNKNOWN; S3_FATAL. */
enum s3_reply s3_put(struct s3_server *server, const char *condition, const char *text,
    int64_t until);

#endif
