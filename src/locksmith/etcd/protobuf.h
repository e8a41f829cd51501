/* SPDX-License-Identifier: MIT */
/* locksmith/etcd/protobuf.h - messages as protocol buffers encode them: written for gRPC, and read out of any bytes. No I/O. */
#ifndef SEMLOCK_LOCKSMITH_ETCD_PROTOBUF_H
#define SEMLOCK_LOCKSMITH_ETCD_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PB_PREFIX = 5, PB_LONGEST = 32 * 1024 };

/* A message that is being written, behind the prefix with which gRPC sends it. There is room for all requests of
   a lock, since its name, which is in each key, is of limited length. A message without room ends the program. */
struct pb_out {
	unsigned char bytes[PB_LONGEST];
	size_t used;
};

/* Begins an empty message. */
void pb_start(struct pb_out *m);

/* Adds a number. */
void pb_int(struct pb_out *m, unsigned int field, int64_t value);

/* Adds a text. */
void pb_text(struct pb_out *m, unsigned int field, const char *text);

/* Begins a message in that field; what is added up to pb_close is in it. Returns what pb_close needs. */
size_t pb_open(struct pb_out *m, unsigned int field);
void pb_close(struct pb_out *m, size_t opened);

/* Fills in the prefix. */
void pb_finish(struct pb_out *m);

/* Bytes that were received: a message, or the rest of one, or a text; {NULL, NULL} is an empty one. */
struct pb {
	const unsigned char *at, *end;
};

struct pb_field {
	unsigned int number;
	int64_t value;	 /* of a number */
	struct pb bytes; /* of a text or a message */
};

/* Takes the next field off *m. False at the end, and at bytes that are no field: then m->at is not m->end. */
bool pb_next(struct pb *m, struct pb_field *field);

/* True if all of the message is fields. */
bool pb_whole(struct pb m);

/* The value of the field with that number; 0 if there is none. */
int64_t pb_number(struct pb m, unsigned int number);

/* The i-th of the texts or messages with that number, counted from 0; an empty one if there are not so many. */
struct pb pb_bytes(struct pb m, unsigned int number, size_t i);

/* Copies a text into out as a string, cut off to fit size. */
void pb_string(struct pb text, char *out, size_t size);

/* Takes the first message that gRPC has sent off *received. False: the message is not complete, or is compressed,
   although no call asks for compression. */
bool pb_unwrap(struct pb *received, struct pb *message);

/* False: received begins with no message of at most limit bytes, whatever may come. */
bool pb_may_unwrap(struct pb received, size_t limit);

#endif
