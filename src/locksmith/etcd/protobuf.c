/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/etcd/protobuf.h"

#include <stdlib.h>
#include <string.h>

enum wire_type { VARINT = 0, FIXED64 = 1, LENGTH_DELIMITED = 2, FIXED32 = 5 };

#define LONGEST_VARINT 10

static void add_bytes(struct protobuf_out *m, const void *bytes, size_t size)
{
	if (size > sizeof m->bytes - m->used)
		abort();
	memcpy(m->bytes + m->used, bytes, size);
	m->used += size;
}

/* Seven bits a byte, the lowest first; returns how many bytes. */
static size_t encode_varint(uint64_t value, unsigned char *out)
{
	size_t n = 0;

	for (; value > 127; value >>= 7)
		out[n++] = (unsigned char)(value | 128);
	out[n++] = (unsigned char)value;
	return n;
}

static void add_varint(struct protobuf_out *m, uint64_t value)
{
	unsigned char bytes[LONGEST_VARINT];
	size_t size = encode_varint(value, bytes);

	add_bytes(m, bytes, size);
}

void protobuf_start(struct protobuf_out *m)
{
	m->used = PROTOBUF_PREFIX;
}

void protobuf_int(struct protobuf_out *m, unsigned int field, int64_t value)
{
	add_varint(m, field << 3 | VARINT);
	add_varint(m, (uint64_t)value);
}

void protobuf_text(struct protobuf_out *m, unsigned int field, const char *text)
{
	add_varint(m, field << 3 | LENGTH_DELIMITED);
	add_varint(m, strlen(text));
	add_bytes(m, text, strlen(text));
}

size_t protobuf_open(struct protobuf_out *m, unsigned int field)
{
	add_varint(m, field << 3 | LENGTH_DELIMITED);
	return m->used;
}

void protobuf_close(struct protobuf_out *m, size_t opened)
{
	unsigned char length[LONGEST_VARINT];
	size_t inside = m->used - opened, n = encode_varint(inside, length);

	add_bytes(m, length, n);
	memmove(m->bytes + opened + n, m->bytes + opened, inside);
	memcpy(m->bytes + opened, length, n);
}

void protobuf_finish(struct protobuf_out *m)
{
	size_t size = m->used - PROTOBUF_PREFIX;

	m->bytes[0] = 0; /* not compressed */
	for (size_t i = 1; i < PROTOBUF_PREFIX; i++)
		m->bytes[i] = (unsigned char)(size >> 8 * (PROTOBUF_PREFIX - 1 - i));
}

static bool take_varint(struct bytes *m, uint64_t *value)
{
	*value = 0;
	for (unsigned int i = 0; i < LONGEST_VARINT && m->at + i < m->end; i++) {
		*value |= (uint64_t)(m->at[i] & 127) << 7 * i;
		if (m->at[i] < 128) {
			m->at += i + 1;
			return true;
		}
	}
	return false;
}

static bool take_bytes(struct bytes *m, uint64_t size, struct bytes *bytes)
{
	if (size > (uint64_t)(m->end - m->at))
		return false;
	*bytes = (struct bytes){m->at, m->at + size};
	m->at += size;
	return true;
}

static bool take_value(struct bytes *m, enum wire_type type, struct protobuf_field *field)
{
	uint64_t number = 0;

	switch (type) {
	case VARINT:
		if (!take_varint(m, &number))
			return false;
		field->value = (int64_t)number;
		return true;
	case LENGTH_DELIMITED:
		return take_varint(m, &number) && take_bytes(m, number, &field->bytes);
	case FIXED64: /* etcd sends none that matters */
		return take_bytes(m, 8, &field->bytes);
	case FIXED32:
		return take_bytes(m, 4, &field->bytes);
	}
	return false;
}

bool protobuf_next(struct bytes *m, struct protobuf_field *field)
{
	struct bytes rest = *m;
	uint64_t tag;

	*field = (struct protobuf_field){.number = 0};
	if (rest.at == rest.end || !take_varint(&rest, &tag) || tag >> 3 == 0 || tag > UINT32_MAX)
		return false;
	field->number = (unsigned int)(tag >> 3);
	if (!take_value(&rest, (enum wire_type)(tag & 7), field))
		return false;
	*m = rest;
	return true;
}

bool protobuf_whole(struct bytes m)
{
	struct protobuf_field field;

	while (protobuf_next(&m, &field))
		;
	return m.at == m.end;
}

int64_t protobuf_number(struct bytes m, unsigned int number)
{
	struct protobuf_field field;

	while (protobuf_next(&m, &field))
		if (field.number == number)
			return field.value;
	return 0;
}

struct bytes protobuf_bytes(struct bytes m, unsigned int number, size_t i)
{
	struct protobuf_field field;

	while (protobuf_next(&m, &field))
		if (field.number == number && i-- == 0)
			return field.bytes;
	return (struct bytes){NULL, NULL};
}

void protobuf_string(struct bytes text, char *out, size_t size)
{
	size_t length = (size_t)(text.end - text.at);

	if (length > size - 1)
		length = size - 1;
	if (length > 0)
		memcpy(out, text.at, length);
	out[length] = '\0';
}

/* The size in the prefix; 0 as long as that is not complete. */
static uint64_t message_size(struct bytes received)
{
	uint64_t size = 0;

	if (received.end - received.at >= PROTOBUF_PREFIX)
		for (size_t i = 1; i < PROTOBUF_PREFIX; i++)
			size = size << 8 | received.at[i];
	return size;
}

bool protobuf_unwrap(struct bytes *received, struct bytes *message)
{
	struct bytes rest = *received;

	if (rest.end - rest.at < PROTOBUF_PREFIX || rest.at[0] != 0)
		return false;
	rest.at += PROTOBUF_PREFIX;
	if (!take_bytes(&rest, message_size(*received), message))
		return false;
	*received = rest;
	return true;
}

bool protobuf_may_unwrap(struct bytes received, size_t limit)
{
	return received.at == received.end || (received.at[0] == 0 && message_size(received) <= limit);
}
