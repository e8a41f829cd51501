/* SPDX-License-Identifier: MIT */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "locksmith/curl/buffer.h"

int buffer_add(struct buffer *buffer, const char *bytes, size_t size)
{
	bool fits = size <= buffer->limit && buffer->used <= buffer->limit - size;
	char *grown = fits ? realloc(buffer->bytes, buffer->used + size + 1) : NULL;

	if (grown == NULL) {
		buffer->overflow = true;
		return -1;
	}
	memcpy(grown + buffer->used, bytes, size);
	buffer->bytes = grown;
	buffer->used += size;
	buffer->bytes[buffer->used] = '\0';
	return 0;
}

void buffer_clear(struct buffer *buffer)
{
	free(buffer->bytes);
	buffer->bytes = NULL;
	buffer->used = 0;
	buffer->overflow = false;
}

const char *buffer_text(const struct buffer *buffer)
{
	return buffer->bytes != NULL ? buffer->bytes : "";
}

size_t buffer_receive(char *bytes, size_t one, size_t size, void *data)
{
	size *= one;
	return buffer_add(data, bytes, size) == 0 ? size : 0;
}
