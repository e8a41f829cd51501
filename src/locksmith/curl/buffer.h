/* SPDX-License-Identifier: MIT */
/* locksmith/curl/buffer.h - the bytes of an answer, up to a limit. */
#ifndef SEMLOCK_LOCKSMITH_CURL_BUFFER_H
#define SEMLOCK_LOCKSMITH_CURL_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct buffer {
	char *bytes; /* always ends in a '\0' that is not counted; NULL while nothing came */
	size_t used;
	size_t limit;  /* more than this many bytes are refused */
	bool overflow; /* bytes were refused: the contents are not complete */
};

/* Add size bytes.  Returns 0, or -1 when the limit is passed or memory is short; then overflow is
 * set. */
int buffer_add(struct buffer *buffer, const char *bytes, size_t size);

/* Forget the contents, keep the limit. */
void buffer_clear(struct buffer *buffer);

/* The contents as a string, "" when there are none. */
const char *buffer_text(const struct buffer *buffer);

/* libcurl's write and header callback: data points to a struct buffer. */
size_t buffer_receive(char *bytes, size_t one, size_t size, void *data);

#endif
