/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "locksmith/etcd/protobuf.h"

enum wire_type { VARINT = 0, FIXED64 = 1, LENGTH_DELIMITED = 2, FIXED32 = 5 };

#define LONGEST_VARINT 10

static void add_bytes(struct protobuf_out *message, const void *bytes, size_t size)
{
	if (size > sizeof message->bytes - message->used)
		abort();
	memcpy(message->bytes + message->used, bytes, size);
	message->used += size;
}

/* Write VALUE to OUT, seven bits a byte, the lowest first.  Returns the number of bytes. */
static size_t encode_varint(uint64_t value, unsigned char *out)
{
	size_t n = 0;

	for (; value > 127; value >>= 7)
		out[n++] = (unsigned char)(value | 128);
	out[n++] = (unsigned char)value;
	return n;
}

static void add_varint(struct protobuf_out *message, uint64_t value)
{
	unsigned char bytes[LONGEST_VARINT];
	size_t size = encode_varint(value, bytes);

	add_bytes(message, bytes, size);
}

void protobuf_start(struct protobuf_out *message)
{
	message->used = PROTOBUF_PREFIX;
}

void protobuf_int(struct protobuf_out *message, unsigned int field, int64_t value)
{
	add_varint(message, field << 3 | VARINT);
	add_varint(message, (uint64_t)value);
}

void protobuf_text(struct protobuf_out *message, unsigned int field, const char *text)
{
	add_varint(message, field << 3 | LENGTH_DELIMITED);
	add_varint(message, strlen(text));
	add_bytes(message, text, strlen(text));
}

size_t protobuf_open(struct protobuf_out *message, unsigned int field)
{
	add_varint(message, field << 3 | LENGTH_DELIMITED);
	return message->used;
}

void protobuf_close(struct protobuf_out *message, size_t opened)
{
	unsigned char length[LONGEST_VARINT];
	size_t inside = message->used - opened, n = encode_varint(inside, length);

	add_bytes(message, length, n);
	memmove(message->bytes + opened + n, message->bytes + opened, inside);
	memcpy(message->bytes + opened, length, n);
}

void protobuf_finish(struct protobuf_out *message)
{
	size_t size = message->used - PROTOBUF_PREFIX;

	message->bytes[0] = 0; /* not compressed */
	for (size_t i = 1; i < PROTOBUF_PREFIX; i++)
		message->bytes[i] = (unsigned char)(size >> 8 * (PROTOBUF_PREFIX - 1 - i));
}

static bool take_varint(struct protobuf *message, uint64_t *value)
{
	*value = 0;
	for (unsigned int i = 0; i < LONGEST_VARINT && message->at + i < message->end; i++) {
		*value |= (uint64_t)(message->at[i] & 127) << 7 * i;
		if (message->at[i] < 128) {
			message->at += i + 1;
			return true;
		}
	}
	return false;
}

static bool take_bytes(struct protobuf *message, uint64_t size, struct protobuf *bytes)
{
	if (size > (uint64_t)(message->end - message->at))
		return false;
	*bytes = (struct protobuf){message->at, message->at + size};
	message->at += size;
	return true;
}

static bool take_value(struct protobuf *message, enum wire_type type, struct protobuf_field *field)
{
	uint64_t number = 0;

	switch (type) {
	case VARINT:
		if (!take_varint(message, &number))
			return false;
		field->value = (int64_t)number;
		return true;
	case LENGTH_DELIMITED:
		return take_varint(message, &number) && take_bytes(message, number, &field->bytes);
	case FIXED64: /* etcd sends none that matters */
		return take_bytes(message, 8, &field->bytes);
	case FIXED32:
		return take_bytes(message, 4, &field->bytes);
	}
	return false;
}

bool protobuf_next(struct protobuf *message, struct protobuf_field *field)
{
	struct protobuf rest = *message;
	uint64_t tag;

	*field = (struct protobuf_field){.number = 0};
	if (rest.at == rest.end || !take_varint(&rest, &tag) || tag >> 3 == 0 || tag > UINT32_MAX)
		return false;
	field->number = (unsigned int)(tag >> 3);
	if (!take_value(&rest, (enum wire_type)(tag & 7), field))
		return false;
	*message = rest;
	return true;
}

bool protobuf_whole(struct protobuf message)
{
	struct protobuf_field field;

	while (protobuf_next(&message, &field))
		;
	return message.at == message.end;
}

int64_t protobuf_number(struct protobuf message, unsigned int number)
{
	struct protobuf_field field;

	while (protobuf_next(&message, &field))
		if (field.number == number)
			return field.value;
	return 0;
}

struct protobuf protobuf_bytes(struct protobuf message, unsigned int number, size_t i)
{
	struct protobuf_field field;

	while (protobuf_next(&message, &field))
		if (field.number == number && i-- == 0)
			return field.bytes;
	return (struct protobuf){NULL, NULL};
}

void protobuf_string(struct protobuf text, char *out, size_t size)
{
	size_t length = (size_t)(text.end - text.at);

	if (length > size - 1)
		length = size - 1;
	if (length > 0)
		memcpy(out, text.at, length);
	out[length] = '\0';
}

/* The size of the message, from the prefix; 0 as long as the prefix is not complete. */
static uint64_t message_size(struct protobuf received)
{
	uint64_t size = 0;

	if (received.end - received.at >= PROTOBUF_PREFIX)
		for (size_t i = 1; i < PROTOBUF_PREFIX; i++)
			size = size << 8 | received.at[i];
	return size;
}

bool protobuf_unwrap(struct protobuf *received, struct protobuf *message)
{
	struct protobuf rest = *received;

	if (rest.end - rest.at < PROTOBUF_PREFIX || rest.at[0] != 0)
		return false;
	rest.at += PROTOBUF_PREFIX;
	if (!take_bytes(&rest, message_size(*received), message))
		return false;
	*received = rest;
	return true;
}

bool protobuf_may_unwrap(struct protobuf received, size_t limit)
{
	return received.at == received.end ||
	       (received.at[0] == 0 && message_size(received) <= limit);
}
