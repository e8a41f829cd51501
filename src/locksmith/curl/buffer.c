/* SPDX-License-Identifier: MIT */
#include <config.h>

#include "locksmith/curl/buffer.h"

#include <stdlib.h>
#include <string.h>

int buffer_add(struct buffer *b, const char *bytes, size_t size)
{
	bool fits = size <= b->limit && b->used <= b->limit - size;
	char *grown = fits ? realloc(b->bytes, b->used + size + 1) : NULL;

	if (grown == NULL) {
		b->overflow = true;
		return -1;
	}
	memcpy(grown + b->used, bytes, size);
	b->bytes = grown;
	b->used += size;
	b->bytes[b->used] = '\0';
	return 0;
}

void buffer_clear(struct buffer *b)
{
	free(b->bytes);
	b->bytes = NULL;
	b->used = 0;
	b->overflow = false;
}

const char *buffer_text(const struct buffer *b)
{
	return b->bytes != NULL ? b->bytes : "";
}

size_t buffer_receive(char *bytes, size_t one, size_t size, void *data)
{
	size *= one;
	return buffer_add(data, bytes, size) == 0 ? size : 0;
}
