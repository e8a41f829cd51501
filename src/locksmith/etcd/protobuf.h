/* SPDX-License-Identifier: MIT */
/* locksmith/etcd/protobuf.h - protocol buffers, the encoding of gRPC: written, and read out of any
 * bytes.  No I/O. */
#ifndef SEMLOCK_LOCKSMITH_ETCD_PROTOBUF_H
#define SEMLOCK_LOCKSMITH_ETCD_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROTOBUF_PREFIX = 5, PROTOBUF_LONGEST = 32 * 1024 };

/* A message being built, after gRPC's length prefix.  It holds any request for a lock, because a
 * lock's name is limited.  Overflow ends the program. */
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

/* Begin a message in that field; what is added up to protobuf_close is in it.  Returns what
 * protobuf_close needs. */
size_t protobuf_open(struct protobuf_out *message, unsigned int field);
void protobuf_close(struct protobuf_out *message, size_t opened);

/* Fill the prefix. */
void protobuf_finish(struct protobuf_out *message);

/* Bytes that were received: a message, or the rest of one, or a text; {NULL, NULL} is an empty
 * one. */
struct protobuf {
	const unsigned char *at, *end;
};

struct protobuf_field {
	unsigned int number;
	int64_t value;         /* of a number */
	struct protobuf bytes; /* of a text or a message */
};

/* Take the next field off *message.  Returns false at the end, and at bytes that are no field; then
 * message->at is not message->end. */
bool protobuf_next(struct protobuf *message, struct protobuf_field *field);

/* True if all of the message is fields. */
bool protobuf_whole(struct protobuf message);

/* The value of the field with that number; 0 if there is none. */
int64_t protobuf_number(struct protobuf message, unsigned int number);

/* The i-th of the texts or messages with that number, counted from 0; an empty one if there are
 * fewer. */
struct protobuf protobuf_bytes(struct protobuf message, unsigned int number, size_t i);

/* Copy a text into out as a string, cut off to fit size. */
void protobuf_string(struct protobuf text, char *out, size_t size);

/* Take the first of gRPC's messages off *received.  Returns false: the message is not complete, or
 * is compressed, although no call asks for compression. */
bool protobuf_unwrap(struct protobuf *received, struct protobuf *message);

/* False if RECEIVED cannot be the beginning of a message of at most LIMIT bytes, whatever
 * follows. */
bool protobuf_may_unwrap(struct protobuf received, size_t limit);

#endif
