/* SPDX-License-Identifier: MIT */
/* locksmith/etcd/protobuf.h - writes and reads protocol buffers, the encoding of gRPC.  The bytes
 * that it reads may be anything.  No I/O. */
#ifndef SEMLOCK_LOCKSMITH_ETCD_PROTOBUF_H
#define SEMLOCK_LOCKSMITH_ETCD_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROTOBUF_PREFIX = 5, PROTOBUF_LONGEST = 32 * 1024 };

/* A message that is being built, after gRPC's length prefix.  There is room for any request,
 * because a lock's name is limited.  If a message is too long nevertheless, the program aborts. */
struct protobuf_out {
	unsigned char bytes[PROTOBUF_LONGEST];
	size_t used;
};

/* Begin an empty message. */
void protobuf_start(struct protobuf_out *message);

/* Add a number. */
void protobuf_int(struct protobuf_out *message, unsigned int field, int64_t value);

/* Add a text. */
void protobuf_text(struct protobuf_out *message, unsigned int field, const char *text);

/* Begin a message in the field FIELD.  What is added until protobuf_close() is inside.  Returns the
 * value to pass to protobuf_close(). */
size_t protobuf_open(struct protobuf_out *message, unsigned int field);
void protobuf_close(struct protobuf_out *message, size_t opened);

/* Fill in gRPC's length prefix: the message is complete. */
void protobuf_finish(struct protobuf_out *message);

/* Received bytes: a message, the rest of a message, or a text.  {NULL, NULL} is an empty one. */
struct protobuf {
	const unsigned char *at, *end;
};

struct protobuf_field {
	unsigned int number;
	int64_t value;         /* of a number */
	struct protobuf bytes; /* of a text or a message */
};

/* Move the next field of *MESSAGE into *FIELD.  Returns false at the end of the message, or at
 * bytes that are no field; then message->at is not message->end. */
bool protobuf_next(struct protobuf *message, struct protobuf_field *field);

/* True if the message consists of valid fields, up to its end. */
bool protobuf_whole(struct protobuf message);

/* The value of the field with that number; 0 if there is none. */
int64_t protobuf_number(struct protobuf message, unsigned int number);

/* The i-th of the texts or messages with that number, counted from 0; an empty one if there are
 * fewer. */
struct protobuf protobuf_bytes(struct protobuf message, unsigned int number, size_t i);

/* Copy a text into out as a string, cut off to fit size. */
void protobuf_string(struct protobuf text, char *out, size_t size);

/* Move the first of gRPC's messages in *RECEIVED into *MESSAGE.  Returns false if it is incomplete,
 * or compressed, though no call asks for compression. */
bool protobuf_unwrap(struct protobuf *received, struct protobuf *message);

/* True if RECEIVED may be the beginning of a message of at most LIMIT bytes. */
bool protobuf_may_unwrap(struct protobuf received, size_t limit);

#endif
